// Package history is the record of one run: what really happened, what the
// subject was told, what it asked for, which faults fired and what the users
// did, in one append-only file of JSON lines.
//
// Two independent witnesses write into it. The observer follows etcd, or, where that
// is out of reach, the API server, and records the truth: every version of every
// relevant object. The
// fault proxy records the subject's view: every request it makes, every
// response it gets, every watch event at the moment it is handed over. Put
// together they tell, for each write of the subject, what it could have known.
//
// # Order
//
// Records stand in the order in which their writers appended them. What the
// proxy is about to hand to the subject (a response, a watch event) is recorded
// before it is handed over, and what the subject sends is recorded before it is
// passed on. So whatever the subject did because of a delivery stands after that
// delivery, and a check that counts what the subject "could have known" counts
// at most a little too much, never too little.
//
// The truth arrives over a watch of its own: the record of a version may stand
// before or after the response or the delivery that carries the same version.
// Versions (resourceVersions) order the truth of all kinds totally; positions in
// the file do not.
//
// The package knows no controller and judges nothing; see package check.
package history
