CREATE TABLE documents (
    source TEXT, page INTEGER, text TEXT, title TEXT, namespace TEXT, permissions TEXT, section TEXT);
CREATE TABLE parents (
    chunk_id TEXT PRIMARY KEY, parent_id TEXT, source TEXT, page INTEGER, start INTEGER, "end" INTEGER, text TEXT,
    namespace TEXT, permissions TEXT, section TEXT);
CREATE TABLE children (
    chunk_id TEXT PRIMARY KEY, parent_id TEXT, source TEXT, page INTEGER, start INTEGER, "end" INTEGER, text TEXT,
    namespace TEXT, permissions TEXT, section TEXT);
CREATE INDEX documents_source ON documents (source);
CREATE INDEX parents_source ON parents (source);
CREATE INDEX children_source ON children (source);
