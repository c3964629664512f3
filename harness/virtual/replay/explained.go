package replay

import "strings"

// These are the reasons for which the replay leaves out a request.
const (
	skipUnserved  = "the API server in virtual time does not serve the resource"
	skipForbidden = "RBAC refused the request; the API server in virtual time permits each request"
	skipApply     = "server-side apply; the API server in virtual time has no managed fields"
	skipOutage    = "kube-apiserver failed with a status of 5xx, such as while a fault had stopped etcd"
	skipUsage     = "kube-apiserver's admission itself wrote the usage of a ResourceQuota; the replay of the admitted request repeats it"
)

// explanation is a known reason for a difference.
type explanation struct {
	reason  string
	applies func(*Request, Difference) bool
}

// explained lists the known reasons. A difference with one of these reasons is not a defect of the
// API server in virtual time.
var explained = []explanation{
	{"two requests deleted the object at the same time, so the answer of one has no resourceVersion; the replay sends one after the other",
		func(r *Request, d Difference) bool {
			return r.lostRace() && (d.Path == "(code)" || d.Path == ".metadata.resourceVersion")
		}},
	{"kube-apiserver was about to delete the object, and had already committed a grace period of 0; the replay sends no request between these two commits",
		func(r *Request, d Difference) bool { return !r.isWrite() && strings.HasSuffix(d.Path, ".metadata") }},
	{"API servers read admission policies once a second, so one enforces a new policy earlier; gauntlet waits for this with a pod and with dry runs",
		func(r *Request, d Difference) bool {
			return (r.ObjectRef.Name == policyProbe || r.Resource() == "configmaps" && r.isDryRun()) && d.Path == "(code)"
		}},
}

// policyProbe is the pod with which an embedded cluster waits until its policies are enforced.
const policyProbe = "gauntlet-pod-lifecycle"

// explain returns the difference d with the reason for it, if the reason is known.
func explain(r *Request, d Difference) Difference {
	for _, e := range explained {
		if e.applies(r, d) {
			d.Reason = e.reason
			return d
		}
	}
	return d
}
