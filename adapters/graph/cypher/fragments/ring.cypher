// The best documents that a step reaches over names or over links, from which the walk continues. If the filter of the
// request excludes some of them, and the step reaches more, the best that pass it are a separate list of results.
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
