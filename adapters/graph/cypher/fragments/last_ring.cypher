// Of the documents that the last step arrives at over names and over links, the best that the filter does not exclude.
CALL {
  WITH request, reached, linked
  UNWIND reached + linked AS pair
  {arrived}
  {best:filter}
  RETURN collect([d, mass]) AS ring{argument}
}
