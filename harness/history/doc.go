// Package history defines, writes and reads the history of a run. A history is an append-only file
// with one JSON record per line.
//
// Two independent sources write records:
//
//   - The observer records every committed version of every observed object. It follows etcd, or
//     watches the API server if etcd is not reachable.
//   - The fault proxy stands between the API server and the controllers under test (the subject).
//     It records what the subject receives and sends: every request, every response, every list and
//     every watch event.
//
// Together, both sources show which versions the subject could have seen before each of its writes.
// The run itself records faults, workload steps, processes and phases.
//
// # Order
//
// Records are in the order in which the sources appended them. The proxy records a response or a
// watch event before sending it to the subject. The proxy records a request before forwarding the
// request to the API server. Therefore everything that the subject did because of a delivery
// follows that delivery in the file.
//
// Before each request, the file contains everything that the subject had received until then:
// lists, events and responses. The file may also contain a few lists, events and responses that had
// not reached the subject yet.
//
// The observer receives commits over a separate watch. The commit record of a version may precede
// or follow the response or delivery that contains the same version. To order versions, compare
// their resource versions, which are revisions of etcd, and not their positions in the file.
//
// The package does not depend on any controller and decides no verdict. Package check decides the
// verdicts.
package history
