package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// # Guide to the model
//
// A checker does not compare a write with the committed state alone. It asks whether any
// cached version on which the controller may have acted justifies the write. The model
// stores these versions. For each record of the history, the runner first calls
// Model.observe and then calls every checker with the model. Checkers only read the model.
//
// These types store the state:
//
//   - Model: the committed state, the running processes, the requests in flight, the open
//     lists and watches, and the effects of the current record.
//   - process: one run of the subject's binary. It begins with the first request of the
//     process and ends with a process record. A restarted process begins with empty caches.
//   - view: the informer caches of one process. Only list responses and watch events change
//     it; commit records do not.
//   - call: one request, with its purpose (create a pod, write a status, and so on), its
//     owner and its work queue key. A call is in flight until its response is recorded.
//   - ownerState: the expectations of one process for one owner of pods (a ReplicaSet or
//     ReplicationController). Requests, responses and changes of the caches update it.
//   - statusBounds: the values that the process may write to the status of that owner.
//   - rolloutState: the versions of one Deployment and its ReplicaSets that one process
//     cached in the recent window.
//   - scaling: a call that sets the spec.replicas of a ReplicaSet, with the cached versions
//     that may justify it.
//   - serviceState: the versions of one Service and its Endpoints that one process cached in
//     the recent window.
//   - metadataSet: the metadata of all objects, whatever their kind. The model maintains it
//     only if a generic controller is under test.
//   - genericCall: a write of a generic controller.
//   - leaseHolder: whether a process holds the leader-election lease, and until when.
//   - pausedTime: for how long a process was paused. Its clock is behind by this time.
//
// A checker reads the effects of the current record from the fields of Model: sent, answered,
// changedOwners, events, endedIdle, died and delivered. For a call, it can find the versions
// that may have justified the call, the calls that were outstanding at that time, and whether
// the process held the lease.
//
// The version on which a controller acted may be older than the newest cached version,
// because workers and the client's rate limit delay a write. The recent window of an object
// says how old that version may be. The window begins at the latest of these times:
//
//   - batchTime before the last request for the object that followed a quiet period. In a
//     quiet period of batchTime or more, no request for the object was in flight;
//   - for a write of Endpoints: lag before the end of the last period in which the whole
//     process was idle;
//   - for a write of a ReplicaSet's status or of Endpoints: lag before the delivery of the
//     version that the write is based on;
//   - for a write of Endpoints: lag before the response to the previous write;
//   - for a Deployment: the delivery of the version that an earlier status write was based
//     on;
//   - for a Deployment: lag before the status write that preceded the last one, because a
//     sync writes the status at most twice;
//   - decisionWindowMax before the call, because a request that takes longer has timed out.
//
// All times are offsets from the start of the run. Times of one process are on the clock of
// that process, which stops while the process is paused.

// Model is the state of the run after the current record. The runner updates it for each
// record before it calls the checkers. Its size depends on the number of objects and of
// requests in flight, not on the length of the history.
type Model struct {
	decoder   *objects.Decoder
	settings  Settings
	tested    *testedControllers
	processes map[string]*process     // running processes of the subject, by name
	ended     map[string]bool         // true for each name whose process ended and has not started again
	calls     map[uint64]*call        // requests in flight, by request ID
	streams   map[uint64]*watchStream // open watches, and lists that are not recorded yet, by request ID

	committed *objectSet // the latest committed version of each object
	start     history.Start
	phase     history.PhaseName // the current phase of the run

	// pauses contains how long each process was paused, by name. A process that was never
	// paused has no entry.
	pauses map[string]*pausedTime
	// stalls contains the times in which gauntlet or a process got no CPU time. clocks contains
	// the latest time on the clock of each process, by name; see clockOf.
	stalls stalls
	clocks map[string]time.Duration

	// The fields below describe the current record. A pointer is nil if the record has no such
	// effect.

	// now is the time of the record, since the start of the run. processTime is the same time
	// on the clock of the process that the record names. That clock stops while the process is
	// paused, and for the duration of each stall.
	processTime, now time.Duration
	seq              int64          // the sequence number of the record
	sent             *call          // the request that the record contains, unless it is a watch
	endedIdle        *process       // the process that was idle until it sent the request in sent
	answered         *answeredCall  // the call whose response the record contains
	changedOwners    []ownerChange  // the owners of pods that changed in the caches of a process
	events           []enqueueEvent // the work queue keys that the record may have enqueued
	died             *process       // the process that ended by itself
	delivered        *process       // the process that received the list or watch event
}

// testedControllers contains the controllers under test, as rows of the table
// kube.Controllers.
type testedControllers struct {
	rows []kube.Controller
	// generic contains the rows of generic controllers. A controller is generic if the model
	// does not know the fields of its kind. Only general checks apply to it.
	generic []kube.Controller
}

// answeredCall is a call together with its response.
type answeredCall struct {
	*call
	response *history.Response
}

// ownerChange says that an owner of pods, or one of its pods, changed in the caches of a
// process.
type ownerChange struct {
	*ownerState
	objectChanged bool // true if the owner itself changed, false if only its pods did
}

// enqueueEvent says that a list or watch event may have enqueued a work queue key.
type enqueueEvent struct {
	workQueueKey
	objectChanged bool // true if the object of the key itself changed, false if only an object that it owns or selects did
}

// workQueueKey is a key in a work queue of a process. The field service identifies a Service.
// For any other object, the field uid does.
type workQueueKey struct {
	process *process
	uid     types.UID
	service objectName
}

// process is one run of the subject's binary, from its start to its end. A restart begins a
// new process with empty caches, work queues and expectations.
type process struct {
	name        string
	ended       bool // true after the process has died, was stopped or was restarted
	tested      *testedControllers
	view        *view                     // the informer caches of the process
	ownerStates map[types.UID]*ownerState // by the UID of the owner of pods
	// rollouts contains the state of each Deployment, by UID.
	rollouts map[types.UID]*rolloutState
	// serviceStates contains the state of each Service and its Endpoints, by the name of the
	// Service.
	serviceStates map[objectName]*serviceState
	// startupOrphans contains the UIDs of the Endpoints that had no Service when the caches of
	// Services and Endpoints had synced. The process must delete them. The map is nil before
	// that time.
	startupOrphans map[types.UID]bool

	// idleAfter is how long a process must send nothing before it counts as idle. The model
	// assumes that an idle process has no sync in progress.
	idleAfter time.Duration
	// batchTime is how long the client's rate limit may delay the last request of a batch. If
	// no request for an object was in flight for batchTime, the process decided on its next
	// request at most batchTime before it sent the request.
	batchTime     time.Duration
	callsInFlight int // requests without a response, except watches and requests for leases
	// lastActivity is when the process last sent a request or got a response, except watches
	// and requests for leases.
	lastActivity time.Duration
	// clientRetries contains the failed requests that client-go may resend by itself, without
	// a new sync of the controller (allowed behavior client-retries). The keys are call.key,
	// and the values are the times of the failures.
	clientRetries map[string]time.Duration
	// idlePeriods counts the periods in which the process was idle. idleUntil is the end of
	// the last of them.
	idlePeriods int
	idleUntil   time.Duration
	// prunedAt is when the model last removed pod states that are older than decisionWindowMax.
	// The model also removes old states after an idle period. That alone would not suffice,
	// because a process may never be idle.
	prunedAt time.Duration

	// deleting maps each pod that the process is deleting to the state of the owner for which
	// it deletes the pod. An entry is removed when the delete fails, or when the pod is no
	// longer active in the cache. A change of the cached controllerRef does not remove it.
	deleting map[types.UID]*ownerState
	// adopted maps each pod that the process adopted to the UID of the new owner. The response
	// to the adoption adds an entry. A list or bookmark removes it, if the cache contains the
	// new controllerRef by then or no longer contains the pod.
	adopted map[types.UID]types.UID
	// liveReads contains the last successful read of each ReplicaSet or ReplicationController
	// from the API server instead of the cache, by UID.
	liveReads map[types.UID]liveRead
	lease     leaseHolder
	// leaseFailed is true if a request for a lease failed, or had no response when the process
	// ended. The leader may then exit, because it could not renew its lease in time. leaseLost
	// is the time of the last such failure, or of the end of the process.
	leaseLost   time.Duration
	leaseFailed bool
}

// call is one request of the subject, except watches.
type call struct {
	process *process
	id      uint64        // the ID of the request
	seq     int64         // the sequence number of the request's record
	sentAt  time.Duration // when the request was sent, on the clock of the process
	verb    callVerb
	// key identifies the request among the requests of the process. All retries of a request
	// have the same key. All pod creates for one owner have the same key, too.
	key string
	// queueKey is the work queue key that the worker was processing. It is the zero value if
	// this is unknown.
	queueKey workQueueKey
	// ownerState is the state of the ReplicaSet or ReplicationController whose pods or status
	// the call writes. It is nil if the call writes neither, or if the owner is unknown.
	ownerState *ownerState
	// rollout is the state of the Deployment that the worker was syncing. It is nil for calls
	// of other controllers.
	rollout *rolloutState
	// scaling describes the new spec.replicas of a ReplicaSet. It is nil if the call does not
	// set spec.replicas.
	scaling *scaling
	// fromVersion is the resourceVersion of the ReplicaSet on which a scaling is based.
	fromVersion history.Version
	// serviceState is the state of the Service whose Endpoints the call writes. It is nil for
	// other calls.
	serviceState *serviceState
	// generic describes a write of a generic controller. It is nil for other calls.
	generic *genericCall
	// pod is the pod that the call deletes, adopts or releases, as it was last in the cache. It
	// is nil if the pod was not in the cache in the recent window.
	pod *objects.Pod
	// ownershipChange is the change of the pod's controllerRef. Only calls of the verb
	// callAdoptOrRelease have it.
	ownershipChange ownershipChange

	// update is the content of an update request. It is nil for other requests.
	update *objectUpdate
	// writesLease is true for a callLease that writes the lease.
	writesLease bool
	// effectObserved is true for a callDeletePod if the pod became inactive in the cache before
	// the response arrived.
	effectObserved bool
	// createdVersion is the resourceVersion of the pod that a callCreatePod has created.
	createdVersion history.Version
	// mustReportFailure is true for a callStatus if a create or delete for the owner has failed
	// since the previous status write. The new status must then contain ReplicaFailure.
	mustReportFailure bool
}

// genericCall describes a write that a generic controller may have sent. A generic controller
// reconciles a kind whose fields the model does not know.
type genericCall struct {
	kind   string          // the kind that the controller reconciles; "" if unknown
	object *objectMetadata // the cached version of the written object; nil if it is not cached
	// unnamed is true for a create whose object has no name. The API server generates one.
	unnamed bool
	deletes bool // true for a delete of an object
}

// callVerb is the purpose of a call, as far as checkers need to know it.
type callVerb int

// The purposes of calls.
const (
	callOther          callVerb = iota // any request that has none of the purposes below
	callLease                          // reads or writes a lease
	callCreatePod                      // creates a pod for a ReplicaSet or ReplicationController
	callDeletePod                      // deletes a pod
	callAdoptOrRelease                 // updates or patches a pod, to adopt or release it
	callStatus                         // updates an owner of pods or a Deployment, in most cases its status
	callReadOwner                      // reads an owner of pods from the API server
)

// leaseResource is the resource of leader-election leases, as histories name it.
const leaseResource = "leases.coordination.k8s.io"

// objectSet is a set of objects of the kinds that the model knows. One objectSet is the
// committed state. Each process has another one for its informer caches.
//
// The set updates the pod counts of each owner when a pod changes, because counting all pods
// for each record would be slow.
type objectSet struct {
	pods        map[types.UID]*objects.Pod
	owners      map[types.UID]*objects.Owner // ReplicaSets and ReplicationControllers
	deployments map[types.UID]*objects.Deployment
	services    map[types.UID]*objects.Service
	endpoints   map[types.UID]*objects.Endpoints
	uidByName   map[objectName]types.UID

	controlled  map[types.UID]map[types.UID]*objects.Pod   // pods with a controllerRef, by its UID
	orphans     map[string]map[types.UID]*objects.Pod      // pods without a controllerRef, by namespace
	podCounts   map[types.UID]*podCounts                   // by the UID of the owner of the pods
	replicaSets map[types.UID]map[types.UID]*objects.Owner // ReplicaSets with a controllerRef, by its UID

	// changedObjects contains, by UID, the owners of pods and the Deployments that changed
	// since the last call of clearChanges. An owner of pods has changed if it, one of its
	// pods, or an orphan that matches its selector changed. A Deployment has changed if it or
	// one of its ReplicaSets changed. The map may also contain UIDs of other controllers of
	// pods.
	changedObjects map[types.UID]change
	// changedServices contains the Services that changed since the last call of clearChanges.
	// A Service has changed if it, its Endpoints, or a pod that matches its selector changed.
	changedServices map[objectName]change
	// podAddresses contains the addresses of each pod, by UID. Only the committed state has
	// them.
	podAddresses map[types.UID]*objects.PodAddress
	// deletedServices contains the names of deleted Services whose Endpoints still exist.
	deletedServices map[objectName]bool
	// metadata contains the metadata of all objects, whatever their kind. Only checks of
	// generic controllers need it. It is nil if no generic controller is under test.
	metadata *metadataSet
	// noLongerActive contains the pods that were active and have become inactive, or were
	// deleted, since the last call of clearChanges.
	noLongerActive []types.UID
}

// metadataSet contains the metadata of objects of any kind. Only checks of generic controllers
// read it, because the model does not know the fields of their kinds.
type metadataSet struct {
	tested     *testedControllers
	byUID      map[types.UID]*objectMetadata
	byResource map[string]map[types.UID]*objectMetadata // by resource and UID
	uidByName  map[objectName]types.UID
	// childResources contains the resources whose objects generic controllers under test
	// control. Some object of each resource had a controllerRef to an object that such a
	// controller reconciles.
	childResources map[string]bool
	// changed is true if an object has changed since the last call of clearChanges.
	changed bool
	// decoder is set if the set also stores the objects that generic controllers under test
	// reconcile. Only Settled needs them, to find out whether the objects have converged.
	decoder *objects.Decoder
	// terminating contains the terminating objects of all kinds. It is empty if decoder is nil.
	terminating map[types.UID]*objectMetadata
}

// objectMetadata is the metadata of one version of an object.
type objectMetadata struct {
	history.Ref
	controller  history.Owner   // the controllerRef; its UID is empty if the object has none
	owners      []history.Owner // all ownerReferences
	generation  int64
	terminating bool
	// ownerChanged is true if the controllerRef of the object has changed since the object was
	// added to the set.
	ownerChanged bool
	object       *history.Object // nil if metadataSet.decoder is nil
}

// change says what has changed about an object since the last call of objectSet.clearChanges.
type change struct {
	objectChanged bool        // true if the object itself changed, false if only its pods, ReplicaSets or Endpoints did
	newPods       []types.UID // pods that the object controls and that were not in the set before
}

// podCounts counts the pods of one ReplicaSet or ReplicationController. Except for
// terminating and terminatingReplicas, it counts only active pods.
type podCounts struct {
	controlled          int // pods whose controllerRef names the owner
	replicas            int // controlled pods that the selector of the owner matches
	fullyLabeled        int // replicas that have all labels of the pod template
	ready               int // replicas that are ready
	orphans             int // pods without a controllerRef that the selector matches; the owner may adopt them
	terminating         int // controlled pods that have a deletionTimestamp
	terminatingReplicas int // terminating pods that the selector matches and whose phase is neither Failed nor Succeeded
}

// view contains the informer caches of one process. It also contains earlier versions of
// pods, because a worker may still act on a version that it read from the cache before.
type view struct {
	*objectSet
	decoder *objects.Decoder
	tested  *testedControllers
	// reachedVersion is the highest resourceVersion that lists and watches of each resource
	// have delivered. The process has observed its own writes up to this version.
	reachedVersion map[string]history.Version
	// requestedAll contains the resources that the process has listed or watched without a
	// selector.
	requestedAll map[string]bool
	// listPages contains the pages of lists whose last page has not arrived yet.
	listPages map[watchScope][]history.Object
	// podStateSince contains, for each pod in the cache, the sequence number of the record that
	// delivered its current state. The state consists of the labels, the controllerRef, and
	// whether the pod is active.
	podStateSince map[types.UID]int64
	// formerPods contains the states that each pod had earlier in the recent window.
	formerPods map[types.UID][]cachedPodState
	// podVersionsSince contains the versions of each pod in the recent window. A version is
	// left out if no field that decides the scale-down order differs from the version before.
	podVersionsSince map[types.UID][]cachedVersion[*objects.Pod]
	// firstCachedAt contains the time when each pod first appeared in the cache.
	firstCachedAt map[types.UID]time.Duration
	// podVersions contains the versions of pods with their addresses, for checks of Endpoints.
	podVersions podVersions
	// relisted is true if the current record is a list that replaced the cached objects. An
	// informer applies the objects of a list one after another, so a worker may read any mix
	// of old and new objects.
	relisted bool
}

// ownerState contains what one process must remember about one ReplicaSet or
// ReplicationController. This includes its expectations: the creates and deletes of pods
// whose effect the process has not observed yet.
type ownerState struct {
	process *process
	uid     types.UID // the UID of the owner
	// closed is true if the cache no longer contains the owner, and none of its calls is
	// outstanding. The state cannot change any more.
	closed bool

	creates outstandingCalls // creates of pods for the owner
	deletes outstandingCalls // deletes of the owner's pods

	// excessObserved counts the pods of this owner that appeared in the cache although no
	// response to a create of this process named them. A controller that only counts added pods
	// takes these pods for its own creates (allowed behaviors lost-response, client-retries).
	// excessObservedAt is when the last of these pods appeared.
	excessObserved   int
	excessObservedAt time.Duration
	// observedBeforeAnswer contains the pods among excessObserved that appeared while a create
	// was in flight. The response to that create may still name them.
	observedBeforeAnswer map[types.UID]bool

	// createBound is the number of pods that creates must not exceed. deleteBound is the number
	// of pods that deletes must leave. Both are the cached spec.replicas. If the owner is
	// terminating or not in the cache, createBound is 0 and deleteBound is unlimited: the
	// process must neither create nor delete pods.
	createBound rangeSinceIdle
	deleteBound rangeSinceIdle
	// gained and lost count the active pods that the owner gained and lost in the cache, except
	// for the pods that this process created and deleted.
	gained countSinceIdle
	lost   countSinceIdle
	// statusBounds are the values that the process may write to the owner's status.
	statusBounds statusBounds

	// synced is true if the cache contains the owner, and the process has received a list or
	// event of pods.
	synced    bool
	podCounts podCounts // counts of the owner's pods in the cache
	// selector is the owner's spec.selector. selectorChanged is true if the process has cached
	// two versions of the owner with different selectors.
	selector        string
	selectorChanged bool
	// templates contains the last pod templates that the owner had in the cache, at most
	// templatesMax. The current template is the last one.
	templates []*objects.Template
}

// outstandingCalls contains the creates or the deletes of one owner's pods whose effect the
// process has not observed.
type outstandingCalls struct {
	// inFlight contains the calls that have no response yet, by request ID.
	inFlight map[uint64]*call
	// unobserved contains the calls that succeeded, by the UID of the pod, until the cache
	// shows that the pod was created or deleted.
	unobserved map[types.UID]*call
	// oldestUnobserved is not later than the time at which any call in unobserved was sent. It
	// shows without a search that no call can expire yet.
	oldestUnobserved time.Duration
	// expired contains the calls that were in unobserved for longer than expectationsTimeout.
	expired map[types.UID]*call
}

// rolloutState contains the versions of one Deployment and of its ReplicaSets that one process
// cached in the recent window.
//
// Deployments and ReplicaSets arrive through different watches, and each watch may be late by a
// different amount. The controller may therefore have acted on any pair of a Deployment version
// and a state of the ReplicaSets.
type rolloutState struct {
	decisionWindow
	process     *process
	uid         types.UID                            // the UID of the Deployment
	deployments []cachedVersion[*objects.Deployment] // the oldest version first
	replicaSets []cachedVersion[replicaSetsState]    // the oldest state first
	// statusWrittenAt is when the process last got a successful response to a write of the
	// Deployment's status.
	statusWrittenAt time.Duration
	// ownWrites contains the ReplicaSets that the API server returned to the process, until
	// the cache contains the same or a newer version. After a write, the controller may act on
	// the version in the response, or still on the older one in the cache.
	ownWrites map[types.UID]*objects.Owner
	// writtenFrom maps each version of a ReplicaSet that the process wrote to the version on
	// which the write was based. Entries from before the recent window are removed.
	writtenFrom map[objects.VersionKey]writeOrigin
	// takenNames contains the names of ReplicaSets for which a create failed with
	// AlreadyExists. The value is the time of the last such response.
	takenNames map[string]time.Duration
	// delayedAt is when a call for the Deployment last failed or took longer than lag (1 s). A
	// conflict does not count if it is among the first conflictsMax failures in a row.
	delayedAt time.Duration
	// failuresInARow counts the calls for the Deployment that failed since one succeeded.
	failuresInARow int
	// ownershipUnclearAt is when the cache last contained a ReplicaSet that the controller
	// may or may not count as the Deployment's. Such a ReplicaSet matches the selector, and
	// is an orphan or terminating.
	ownershipUnclearAt time.Duration
}

// serviceState contains the versions of one Service and its Endpoints that one process cached
// in the recent window.
type serviceState struct {
	decisionWindow
	name      objectName // the name of the Service
	service   presence   // whether the cache contains the Service, and of which type
	endpoints presence   // whether the cache contains the Endpoints, and of which type
	// services contains the versions of the Service, oldest first. A nil value means that the
	// cache did not contain the Service at that time.
	services []cachedVersion[*objects.Service]
	// version is the highest resourceVersion of the Endpoints that the cache has contained, and
	// the time when it first contained that version.
	version cachedVersion[history.Version]
	// answered is when the process last got a response to a write of the Endpoints.
	// lastWriteFailed is true if that write failed. The process may then have read the
	// Endpoints from the API server before it sends the next write.
	answered        time.Duration
	lastWriteFailed bool
}
