// The steps to one more ring, see walk.cypher: from the ring before over links, from the one before that over names.
CALL {
  WITH request, <two before>
  UNWIND <two before> AS pair
  {over_names:fanout}
}
CALL {
  WITH <two before>
  UNWIND <two before> AS pair
  {over_single_names:fanout}
}
WITH request, <all before>, related + returned AS reached
CALL {
  WITH request, <one before>
  UNWIND <one before> AS pair
  {over_links:fanout}
}
