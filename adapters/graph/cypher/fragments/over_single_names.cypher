// The mass that comes back to a document from names that no other document mentions.
[pair IN {argument} WHERE pair[0].single > 0 | [pair[0], pair[1] * pair[0].single / pair[0].strength]]
