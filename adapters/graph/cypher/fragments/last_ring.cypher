// The best documents that the last step reaches over names or over links, and that pass the filter.
CALL {
  WITH request, reached, linked
  UNWIND reached + linked AS pair
  {arrived}
  {best:filter}
  RETURN collect([d, mass]) AS ring{argument}
}
