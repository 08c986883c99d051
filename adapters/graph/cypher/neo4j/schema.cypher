CREATE CONSTRAINT trivium_document IF NOT EXISTS FOR (d:Document) REQUIRE d.key IS UNIQUE;
CREATE CONSTRAINT trivium_name IF NOT EXISTS FOR (n:Name) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT trivium_word IF NOT EXISTS FOR (w:Word) REQUIRE w.key IS UNIQUE;
CREATE CONSTRAINT trivium_scope IF NOT EXISTS FOR (s:Scope) REQUIRE s.key IS UNIQUE;
CREATE CONSTRAINT trivium_index IF NOT EXISTS FOR (i:Index) REQUIRE i.name IS UNIQUE;
CREATE INDEX trivium_document_index IF NOT EXISTS FOR (d:Document) ON (d.index);
CREATE INDEX trivium_scope_index IF NOT EXISTS FOR (s:Scope) ON (s.index);
