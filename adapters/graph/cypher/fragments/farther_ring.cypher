// The steps to one more ring, see walk.cypher: from the ring before over links, from the one before that over names.
CALL {
  WITH request, {two_before}
  UNWIND {two_before} AS pair
  {over_names:fanout}
}
CALL {
  WITH {two_before}
  UNWIND {two_before} AS pair
  {over_single_names:fanout}
}
WITH request, {all_before}, related + returned AS reached
CALL {
  WITH request, {one_before}
  UNWIND {one_before} AS pair
  {over_links:fanout}
}
