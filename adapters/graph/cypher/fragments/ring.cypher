// Of the documents that a step arrives at over names and over links, the best to go on from. If the request's filter
// excludes some of them, and more arrived than these, then the best that it does not exclude are taken apart as results.
CALL {
  WITH request, reached, linked
  UNWIND reached + linked AS pair
  {arrived}
  {best:access}
  WITH d, mass, {passes:filter} AS passes
  RETURN collect([d, mass]) AS ring{argument}, count(CASE WHEN passes THEN NULL ELSE 1 END) AS excluded
}
CALL {
  WITH request, reached, linked, ring{argument}, excluded
  UNWIND CASE WHEN size(ring{argument}) = $cap AND excluded > 0 THEN reached + linked ELSE [] END AS pair
  {arrived}
  {best:filter}
  RETURN collect([d, mass]) AS passing{argument}
}
