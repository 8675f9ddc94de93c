CREATE TABLE IF NOT EXISTS documents (
    source TEXT, key TEXT, fingerprint TEXT NOT NULL, ordinal REAL, path TEXT NOT NULL, label TEXT NOT NULL,
    PRIMARY KEY (source, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS labels ON documents (source, label);
CREATE TABLE IF NOT EXISTS sources (
    name TEXT PRIMARY KEY, made_of TEXT NOT NULL, cursor TEXT NOT NULL, seen REAL, failure TEXT NOT NULL) WITHOUT ROWID;
