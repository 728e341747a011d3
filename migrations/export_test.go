package migrations

// UpWith is Up with other files.
var UpWith = up
