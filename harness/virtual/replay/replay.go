// Package replay sends recorded requests to the API server in virtual time. It compares the answers
// with those of kube-apiserver.
//
// A recording is an audit log of a run on an embedded cluster: `gauntlet run --audit-dir=DIRECTORY`
// writes one for each run. It has the requests of all clients since the start of etcd. [Replay]
// therefore begins with an empty etcd in memory.
//
// The replay sends the requests one after the other, in the order in which etcd executed them. It
// repeats the recorded values that otherwise differ from run to run. Before each commit, it raises
// etcd's revision, so that the commit gets the recorded revision. New objects get their recorded
// names, addresses and UIDs. The virtual clock shows the time at which kube-apiserver received the
// request. The answers must therefore be equal, apart from times and from resourceVersions that the
// replay cannot repeat. explained.go lists the exceptions.
//
// recording.go reads recordings, and order.go sorts the requests. replay.go sends them, and
// prepare.go adapts them. compare.go compares the answers, and explained.go lists the differences
// that have a known reason. report.go counts requests and differences.
package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/kube-gauntlet/gauntlet/faults/inprocess"
	"github.com/kube-gauntlet/gauntlet/harness/internal/memetcd"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
)

// Replay sends the requests to a new API server, and adds the comparison to the report. Call it in a
// bubble of testing/synctest, after [apiserver.Prepare] outside of the bubble. Replay sorts the slice
// requests.
func Replay(ctx context.Context, requests []*Request, report *Report) error {
	if len(requests) == 0 {
		return nil
	}
	order(requests)
	// In the bubble, the time is the year 2000.
	<-time.After(time.Until(requests[0].received().Add(-time.Minute)))
	etcd := memetcd.New()
	server, err := apiserver.New(ctx, etcd.Client, apiserver.Options{})
	if err != nil {
		return err
	}
	defer server.Stop()
	served, err := servedResources(server)
	if err != nil {
		return err
	}
	connection := inprocess.Direct(server.Handler)
	defer connection.Close()
	r := &replayer{connection: connection, etcd: etcd.Client(ctx), served: served, report: report, terminating: map[object]bool{}, moved: map[string]string{}, usage: map[string][]string{}}
	uuid.SetRand(&r.uids)
	defer uuid.SetRand(nil)
	for _, request := range requests {
		if err := r.replay(ctx, request); err != nil {
			return err
		}
	}
	return nil
}

// replayer replays one recording.
type replayer struct {
	connection http.RoundTripper
	etcd       *clientv3.Client
	served     map[string]bool // the resources that the API server serves, as in Request.Resource
	uids       uidSource
	report     *Report
	// terminating has the objects that were deleted with a grace period.
	terminating map[object]bool
	// policiesChanged is true if the replay has written an admission policy that the API server may
	// not enforce yet.
	policiesChanged bool
	// moved maps recorded resourceVersions that the replay could not repeat to those that the
	// objects got in the replay.
	moved map[string]string
	// usage maps each namespace to recorded resourceVersions of its ResourceQuotas. With each of
	// these versions, kube-apiserver's admission counted a new object. The replay skips the
	// recorded update, because its own admission makes the same update for the recorded create.
	// follow then removes the version from usage.
	usage map[string][]string
}

// replay sends one request, and compares the answer.
func (r *replayer) replay(ctx context.Context, recorded *Request) error {
	if reason := r.skip(recorded); reason != "" {
		r.report.skip(recorded, reason)
		return nil
	}
	r.advance(recorded)
	r.awaitPolicies(recorded)
	before, err := r.fill(ctx, recorded)
	if err != nil {
		return err
	}
	sent, err := r.prepare(recorded)
	if err != nil {
		return fmt.Errorf("line %d of the recording: %w", recorded.Line, err)
	}
	if recorded.Verb == "create" {
		r.uids.repeat(recorded.answer.Metadata.UID)
	}
	response, err := r.send(ctx, recorded, sent)
	if err != nil {
		return fmt.Errorf("line %d of the recording: %w", recorded.Line, err)
	}
	after, err := r.revision(ctx)
	if err != nil {
		return err
	}
	r.follow(recorded, before, after)
	if recorded.Verb == "deletecollection" && recorded.succeeded() {
		r.followItems(recorded, response)
	}
	if recorded.Verb == "delete" && recorded.succeeded() {
		r.terminating[recorded.object()] = recorded.answer.Metadata.GracePeriod > 0
	}
	r.report.add(recorded, r.compare(recorded, response, after-before))
	return nil
}

// followItems stores in r.moved which resourceVersions the objects of a deletecollection got in the
// replay. They can differ from the recorded ones, because other requests may have committed
// revisions during the recorded request.
func (r *replayer) followItems(recorded *Request, replayed response) {
	replayedItems := items(replayed.body)
	for i, item := range items(recorded.ResponseObject.Raw) {
		if i < len(replayedItems) && replayedItems[i].Metadata.Name == item.Metadata.Name {
			r.moved[item.Metadata.ResourceVersion] = replayedItems[i].Metadata.ResourceVersion
		}
	}
}

// advance lets other goroutines, such as informers, work until they wait. If the recorded request
// committed a revision, advance also advances the clock to the time of this request. For a read,
// the clock does not advance: a read may return an old state, so the replay may send it before
// writes that kube-apiserver received earlier.
func (r *replayer) advance(recorded *Request) {
	pause := time.Duration(1)
	if recorded.position.commits {
		pause = max(time.Until(recorded.received()), pause)
	}
	<-time.After(pause)
}

// policyRefresh is the time until the API server enforces a changed admission policy.
const policyRefresh = time.Second

// awaitPolicies waits until the API server enforces all changed admission policies. It does so only
// if a policy denied the recorded request. Both API servers read the policies once a second, but
// not at the same time.
func (r *replayer) awaitPolicies(recorded *Request) {
	if strings.Contains(recorded.ResponseStatus.Message, "ValidatingAdmissionPolicy") && r.policiesChanged {
		<-time.After(policyRefresh)
		r.policiesChanged = false
	}
	if recorded.ObjectRef.APIGroup == "admissionregistration.k8s.io" && recorded.isWrite() {
		r.policiesChanged = true
	}
}

// skip returns the reason for which the replay leaves out a request, or "".
func (r *replayer) skip(recorded *Request) string {
	switch {
	case !r.served[recorded.Resource()]:
		return skipUnserved
	case recorded.Annotations["authorization.k8s.io/decision"] == "forbid":
		return skipForbidden
	case recorded.Code() >= http.StatusInternalServerError:
		return skipOutage
	case recorded.isApply():
		return skipApply
	case recorded.Resource() == "resourcequotas/status" && recorded.User.Username == user.APIServerUser && recorded.isWrite():
		if recorded.succeeded() {
			namespace := recorded.ObjectRef.Namespace
			r.usage[namespace] = append(r.usage[namespace], recorded.answer.Metadata.ResourceVersion)
		}
		return skipUsage
	}
	return ""
}

// fill raises etcd's revision to the one that was current when kube-apiserver executed the request.
// It returns the resulting revision.
//
// To raise the revision, fill writes a key of its own. These writes take the place of recorded
// commits that the replay does not repeat, such as those of resources that the API server does not
// serve.
func (r *replayer) fill(ctx context.Context, recorded *Request) (int64, error) {
	target := recorded.position.revision
	if recorded.position.commits {
		target--
	}
	if recorded.position.commits && r.commitsTwice(recorded) {
		target--
	}
	revision, err := r.revision(ctx)
	for ; revision < target && err == nil; revision++ {
		_, err = r.etcd.Put(ctx, "/gauntlet/replay", "")
	}
	return revision, err
}

// commitsTwice reports whether the API server will make two commits for a request. The first one
// changes an object before its deletion, or the usage of a ResourceQuota before a new object.
func (r *replayer) commitsTwice(recorded *Request) bool {
	switch recorded.Verb {
	case "create":
		return len(r.usage[recorded.ObjectRef.Namespace]) > 0
	case "delete":
		return recorded.endsGracePeriod() && r.terminating[recorded.object()]
	}
	return false
}

// revision returns etcd's revision.
func (r *replayer) revision(ctx context.Context) (int64, error) {
	response, err := r.etcd.Get(ctx, "/gauntlet/replay", clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return response.Header.Revision, nil
}

// follow stores in r.moved the resourceVersions of a request's commits that differ from the
// recorded ones. The arguments before and after are etcd's revisions before and after the replayed
// request.
func (r *replayer) follow(recorded *Request, before, after int64) {
	if !recorded.position.commits || after == before {
		return
	}
	if expected := recorded.position.revision; after != expected && recorded.Verb != "deletecollection" {
		r.moved[strconv.FormatInt(expected, 10)] = strconv.FormatInt(after, 10)
	}
	if namespace := recorded.ObjectRef.Namespace; after-before > 1 && len(r.usage[namespace]) > 0 {
		r.moved[r.usage[namespace][0]] = strconv.FormatInt(after-1, 10)
		r.usage[namespace] = r.usage[namespace][1:]
	}
}

// response is an answer in the replay. A watch has no body if it succeeded.
type response struct {
	code int
	body []byte
}

// send sends a request to the API server as the recorded user.
func (r *replayer) send(ctx context.Context, recorded *Request, sent *http.Request) (response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sender := &user.DefaultInfo{Name: recorded.User.Username, UID: recorded.User.UID, Groups: recorded.User.Groups}
	answer, err := r.connection.RoundTrip(sent.WithContext(request.WithUser(ctx, sender)))
	if err != nil {
		return response{}, err
	}
	defer answer.Body.Close()
	if recorded.Verb == "watch" && answer.StatusCode == http.StatusOK {
		return response{code: answer.StatusCode}, nil
	}
	body, err := io.ReadAll(answer.Body)
	return response{answer.StatusCode, body}, err
}

// compare compares the answers. The argument commits is the number of revisions that the request
// committed in the replay.
func (r *replayer) compare(recorded *Request, got response, commits int64) []Difference {
	c := comparison{recorded: recorded, moved: r.moved}
	if got.code != recorded.Code() {
		c.add("(code)", recorded.Code(), strconv.Itoa(got.code)+" "+strings.TrimSpace(string(got.body)))
		return c.differences
	}
	unknown := recorded.canCommit() && !recorded.position.commits && recorded.commitVersion() == 0
	if !unknown && recorded.position.commits != (commits > 0) {
		c.add("(commits)", recorded.position.commits, commits)
	}
	if recorded.ResponseObject == nil || recorded.Verb == "watch" && recorded.succeeded() {
		return c.differences
	}
	want, wantErr := decode(recorded.ResponseObject.Raw)
	answered, gotErr := decode(got.body)
	if wantErr != nil || gotErr != nil {
		c.add("(body)", wantErr, gotErr)
		return c.differences
	}
	c.compare("", want, answered)
	return c.differences
}

// decode decodes JSON. It keeps the text of each number, because a float64 would round large
// numbers.
func decode(data []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}
