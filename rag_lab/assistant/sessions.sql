
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, person TEXT NOT NULL, corpus TEXT NOT NULL, began REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS turns (
    session TEXT NOT NULL, number INTEGER NOT NULL, question TEXT NOT NULL, answer TEXT, citations TEXT NOT NULL,
    seen TEXT NOT NULL, at REAL NOT NULL, thinking TEXT NOT NULL, PRIMARY KEY (session, number)
);
