// A document that others link to stays as a node that is not present.
UNWIND $keys AS key
MATCH (d:Document {key: key})
SET d.present = false, d.filter_terms = [], d.words = [], d.capitalised = [], d.version = $version
WITH d
OPTIONAL MATCH (d)<-[l:LINKS]-()
WITH d, count(l) AS links WHERE links = 0
DETACH DELETE d
