-- A database whose schema was made to harm whoever reads it. Each statement is one line.
PRAGMA page_size = 512
CREATE TABLE t(x INTEGER PRIMARY KEY, y)
INSERT INTO t VALUES (1, 'fine')
CREATE TABLE json_each(key, type, value, atom)
INSERT INTO json_each VALUES ('sql', 'text', 'SELECT ''from the database''', 'SELECT ''from the database''')
CREATE VIEW loads AS SELECT load_extension('/project/evil.so')
CREATE VIEW writes AS SELECT writefile('/project/written', 'x')
CREATE VIEW itself AS SELECT * FROM itself
CREATE VIEW one AS SELECT * FROM other
CREATE VIEW other AS SELECT * FROM one
CREATE VIEW forever AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS n FROM n
CREATE VIEW huge AS SELECT hex(zeroblob(100000000)) AS x
CREATE VIEW doubling AS WITH RECURSIVE d(s) AS (VALUES ('x') UNION ALL SELECT s || s FROM d) SELECT max(length(s)) FROM d
CREATE TABLE generated(a, b AS (hex(zeroblob(a))))
INSERT INTO generated(a) VALUES (20000000)
CREATE TRIGGER fires INSTEAD OF INSERT ON loads BEGIN DELETE FROM t; END
CREATE VIRTUAL TABLE words USING fts5(word)
INSERT INTO words VALUES ('one'), ('two')
PRAGMA writable_schema = ON
INSERT INTO sqlite_schema VALUES ('table', 'dump', 'dump', 0, 'CREATE VIRTUAL TABLE dump USING sqlite_dbpage')
INSERT INTO sqlite_schema VALUES ('table', 'unknown', 'unknown', 0, 'CREATE VIRTUAL TABLE unknown USING nothing_like_it(a, b)')
INSERT INTO sqlite_schema VALUES ('table', 'csv', 'csv', 0, 'CREATE VIRTUAL TABLE csv USING data(filename=''/etc/passwd'')')
INSERT INTO sqlite_schema VALUES ('table', 'same_page', 'same_page', 2, 'CREATE TABLE same_page(a, b, c, d)')
UPDATE words_data SET block = CAST(replace(hex(zeroblob(150)), '0', 'z') AS BLOB) WHERE id > 1
INSERT INTO sqlite_schema SELECT 'view', 'deep', 'deep', 0, 'CREATE VIEW deep AS ' || replace(hex(zeroblob(1500)), '00', 'SELECT * FROM (') || 'SELECT 1' || replace(hex(zeroblob(1500)), '00', ')')
