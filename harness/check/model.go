package check

import (
	"encoding/json"
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
// holds these versions. The runner calls Model.observe once for each record of the
// history and then calls every checker with the model. Checkers only read the model.
//
// These types hold the state:
//
//   - Model: the committed state (updated by each commit record), the live processes, the
//     requests in flight, the open lists and watches, and the meaning of the current record.
//   - process: one run of the subject's binary. It begins with the first request of the
//     process and ends with a process record. A restarted process begins with empty caches.
//   - view: the informer caches of one process. Only list responses and watch deliveries
//     change it; commit records do not.
//   - call: one request, classified when it is sent (verb, owner, work queue key). It is
//     in flight until its response is recorded.
//   - ownerState: the expectations of one process for one ReplicaSet or
//     ReplicationController. Requests, responses and changes of the caches update it.
//   - statusBounds: the values that a status write for that owner may contain.
//   - rolloutState: the cached versions of one Deployment and its ReplicaSets in the recent
//     window. A scaling is a call that sets spec.replicas, with the versions that may
//     justify it.
//   - serviceState: the same for one Service and its Endpoints.
//   - metadataSet: the metadata of all objects, whatever their kind. The model maintains it
//     only if a generic controller is under test. genericCall is a write of such a
//     controller.
//   - leaseHolder: whether a process holds the leader-election lease, and until when.
//   - pausedTime: how long a process was paused, so how far its clock is behind.
//
// At each record, a checker may ask what the record means: Model.sent, answered,
// changedOwners, events, endedIdle and died. For a call it may ask which versions of an
// object may have justified it, which earlier calls were outstanding, and whether the
// process held the lease.
//
// The decision that led to a write may be older than the newest cached version, because
// caches, workers and the client's rate limit are slow. The recent window of an object
// bounds how old it may be. The window begins at the latest of these times:
//
//   - when the process was last idle about the object, less lag or batchTime: no request
//     for it was in flight, and none had been sent for a while;
//   - when the version of the ReplicaSet or Endpoints that the write is based on was
//     delivered, less lag;
//   - when the version of the Deployment that an earlier status write was based on was
//     delivered;
//   - the status write of the Deployment before the last one, less lag: a sync writes the
//     status at most twice;
//   - decisionWindowMax ago: a request that takes longer has timed out.
//
// All times are offsets from the start of the run, on the clock of the process concerned.

// Model is the state of the run after some number of records. For each record, the runner
// updates the Model before it calls the checkers. Its size depends on the live objects and
// the requests in flight, not on the length of the history.
type Model struct {
	decoder   *objects.Decoder
	settings  Settings
	tested    *testedControllers
	processes map[string]*process     // live processes by name
	ended     map[string]bool         // names of processes that ended and have not started again
	calls     map[uint64]*call        // requests in flight, by request ID
	streams   map[uint64]*watchStream // open watches, and lists without a response, by request ID

	committed *objectSet
	start     history.Start
	phase     history.PhaseName

	// pauses has an entry for each process that was ever paused, by name.
	pauses map[string]*pausedTime

	// The following fields describe the current record. now is the time of the record.
	// processTime is the same time on the clock of the process that the record concerns. That
	// clock does not advance while the process is paused.
	processTime, now time.Duration
	seq              int64          // sequence number of the record
	sent             *call          // the request that was sent
	endedIdle        *process       // the process that was idle until it sent the request in sent
	answered         *answeredCall  // the request that got a response
	changedOwners    []ownerChange  // owners that changed in the caches of a process
	events           []enqueueEvent // events that the caches delivered to event handlers
	died             *process       // the process that died
	delivered        *process       // the process that received a list or a watch event
}

// testedControllers contains the controllers under test, as rows of the registry.
type testedControllers struct {
	rows []kube.Controller
	// generic contains those rows whose kind the model does not know in detail. Only general
	// checks apply to these controllers.
	generic []kube.Controller
}

// answeredCall is a call with its response.
type answeredCall struct {
	*call
	response *history.Response
}

// ownerChange is a change of an owner or of its pods in the caches of a process.
type ownerChange struct {
	*ownerState
	objectChanged bool // the owner itself changed, not only its pods
}

// enqueueEvent is an event that may have enqueued a work queue key.
type enqueueEvent struct {
	workQueueKey
	objectChanged bool // the event concerns the object of the key itself
}

// workQueueKey is a key in one of the work queues of a process. For a Service, it has the
// name in the field service. For any other object, it has the uid.
type workQueueKey struct {
	process *process
	uid     types.UID
	service objectName
}

// process is one run of one instance of the subject. A restart begins a new process with
// empty caches, work queues and expectations.
type process struct {
	name        string
	ended       bool
	tested      *testedControllers
	view        *view
	ownerStates map[types.UID]*ownerState // by UID of the owner
	// rollouts has an entry for each Deployment, serviceStates for each Service.
	rollouts      map[types.UID]*rolloutState
	serviceStates map[objectName]*serviceState
	// startupOrphans contains the Endpoints that had no Service when the caches of Services
	// and Endpoints had synced. It is nil until then.
	startupOrphans map[types.UID]bool

	// idleAfter is the time after which a process that sends nothing counts as idle.
	idleAfter time.Duration
	// batchTime is how long the client's rate limit may delay the last request of a batch.
	// A decision about an object is at most this old if no request for it is in flight.
	batchTime     time.Duration
	callsInFlight int           // requests in flight, except those for leases
	lastActivity  time.Duration // when the process last sent such a request or got a response
	// clientRetries contains the failed requests that client-go may retry by itself, without
	// the controller, and when they failed (allowed behavior client-retries).
	clientRetries map[string]time.Duration
	// idlePeriods counts the periods in which the process was idle. idleUntil is the end of
	// the last period.
	idlePeriods int
	idleUntil   time.Duration
	// prunedAt is when pod states older than decisionWindowMax were last removed. Idle periods
	// alone would not limit the number of pod states, because a process may never be idle.
	prunedAt time.Duration

	// deleting maps each pod that the process deletes to the state of the owner for which
	// the process deletes it. An entry exists as long as the pod is active in the cache,
	// even if its cached controllerRef changes. A failed delete removes the entry.
	deleting map[types.UID]*ownerState
	// adopted maps each pod to the owner for which the process adopted it. An entry exists
	// from the response until the cache contains the new controllerRef.
	adopted map[types.UID]types.UID
	// liveReads is the last successful live read of each owner, by UID of the owner.
	liveReads map[types.UID]liveRead
	lease     leaseHolder
	// leaseLost is the time of the last failed request for a lease. It is also the time
	// when a leader exits because it got no response and could not renew the lease in time.
	// leaseFailed is true if either has happened.
	leaseLost   time.Duration
	leaseFailed bool
}

// call is a request of the subject. Requests for leases and watches are not part of its
// work.
type call struct {
	process         *process
	id              uint64
	seq             int64 // of the request's record
	sentAt          time.Duration
	verb            callVerb
	key             string          // equal for each retry of the same request
	queueKey        workQueueKey    // the key that the worker was processing; zero if unknown
	ownerState      *ownerState     // the state of the owner whose pods the call creates, deletes or changes; nil if unknown
	rollout         *rolloutState   // the state of the Deployment for which the call was sent, or nil
	scaling         *scaling        // the change of a ReplicaSet's spec.replicas, or nil
	fromVersion     history.Version // the resourceVersion of the ReplicaSet on which the call is based
	serviceState    *serviceState   // the state of the Endpoints that the call writes, or nil
	generic         *genericCall    // the call of a generic controller; nil for other calls
	pod             *objects.Pod    // the pod that the call deletes, adopts or releases; nil if it was never in the cache
	ownershipChange ownershipChange // of callAdoptOrRelease

	update            *objectUpdate   // the content of an update; nil for other verbs
	writesLease       bool            // of callLease: it writes the lease
	effectObserved    bool            // of callDeletePod: the pod became inactive in the cache before the response
	createdVersion    history.Version // of callCreatePod: the resourceVersion of the new pod
	mustReportFailure bool            // of callStatus: the first status write after a create or delete has failed
}

// genericCall is a write whose sender may be a generic controller.
type genericCall struct {
	kind   string          // the kind that this controller reconciles; "" if unknown
	object *objectMetadata // the cached object that the call writes; nil if there is none
	// unnamed is true for a create for which the API server generates the name.
	unnamed bool
	deletes bool
}

// callVerb is the purpose of a call. It has one value for each purpose that checkers
// distinguish.
type callVerb int

const (
	callOther          callVerb = iota
	callLease                   // any request for a lease
	callCreatePod               // creates a pod for an owner
	callDeletePod               // deletes a pod
	callAdoptOrRelease          // updates or patches a pod: adopts or releases it
	callStatus                  // updates an owner
	callReadOwner               // reads an owner from the API server
)

const leaseResource = "leases.coordination.k8s.io"

// objectSet is a set of objects: the committed state, or the informer caches of one
// process. It maintains the pod counts of each owner, so that checkers do not have to count
// pods.
type objectSet struct {
	pods        map[types.UID]*objects.Pod
	owners      map[types.UID]*objects.Owner
	deployments map[types.UID]*objects.Deployment
	services    map[types.UID]*objects.Service
	endpoints   map[types.UID]*objects.Endpoints
	uidByName   map[objectName]types.UID

	controlled  map[types.UID]map[types.UID]*objects.Pod   // pods by the UID of their controller
	orphans     map[string]map[types.UID]*objects.Pod      // pods without controller, by namespace
	podCounts   map[types.UID]*podCounts                   // by UID of the owner
	replicaSets map[types.UID]map[types.UID]*objects.Owner // by the UID of their controller

	// changedObjects contains the owners that changed since the last call of clearChanges. A
	// change concerns the owner itself, its pods or orphans that it matches. changedObjects
	// also contains a Deployment if the Deployment itself or one of its ReplicaSets changed.
	changedObjects map[types.UID]change
	// changedServices contains the Services that changed since the last call of clearChanges.
	// A change concerns the Service itself, its pods or its Endpoints.
	changedServices map[objectName]change
	// podAddresses has the addresses of each pod. It is set only in the committed state.
	podAddresses map[types.UID]*objects.PodAddress
	// deletedServices contains the deleted Services that still have Endpoints.
	deletedServices map[objectName]bool
	// metadata contains all objects of the set, whatever their kind. It is nil if no generic
	// controller is under test, because only general checks of such controllers need it.
	metadata *metadataSet
	// noLongerActive contains the pods that became inactive since the last clearChanges.
	noLongerActive []types.UID
}

// metadataSet contains the metadata of objects of any kind.
type metadataSet struct {
	tested     *testedControllers
	byUID      map[types.UID]*objectMetadata
	byResource map[string]map[types.UID]*objectMetadata
	uidByName  map[objectName]types.UID
	// childResources contains the resources of which an object was ever controlled by an
	// object that a generic controller under test reconciles.
	childResources map[string]bool
	// changed is true if an object has changed since the last call of clearChanges.
	changed bool
	// withBodies is true if the set contains the bodies of the objects that generic
	// controllers under test reconcile. terminating then contains all terminating objects.
	withBodies  bool
	terminating map[types.UID]*objectMetadata
}

// objectMetadata is the metadata of one version of an object.
type objectMetadata struct {
	history.Ref
	controller  history.Owner // UID is empty if there is no controllerRef
	owners      []history.Owner
	generation  int64
	terminating bool
	// ownerChanged is true if an earlier version in the set had another controller, or none.
	ownerChanged bool
	body         json.RawMessage // nil unless the set has bodies
	progress     *progress       // decoded from the body when it is first needed
}

// progress contains the fields of an object that show whether its controller has converged,
// by the conventions of the API. A field that the object does not have is nil.
type progress struct {
	Spec struct {
		Replicas *int
	}
	Status struct {
		ObservedGeneration *int64
		Replicas           *int
		ReadyReplicas      *int
		AvailableReplicas  *int
	}
}

// change describes the changes of an owner since the last call of clearChanges.
type change struct {
	objectChanged bool        // the owner itself changed, not only its pods
	newPods       []types.UID // pods that it controls and that were not in the set before
}

// podCounts counts the pods of one owner. Except for the two terminating counts, it counts
// only active pods.
type podCounts struct {
	controlled          int // controlled by the owner
	replicas            int // controlled, and matched by the selector
	fullyLabeled        int // replicas that have all labels of the template
	ready               int // replicas that are ready
	orphans             int // without controller, and matched by the selector: adoptable
	terminating         int // controlled and terminating
	terminatingReplicas int // terminating, matched by the selector, neither failed nor succeeded
}

// view contains the informer caches of one process. It also contains former states of
// objects, because the process may still act on them.
type view struct {
	*objectSet
	decoder *objects.Decoder
	tested  *testedControllers
	// reachedVersion is the resourceVersion that the cache of each resource has reached by
	// lists and watches. The process has observed its own writes up to this version.
	reachedVersion map[string]history.Version
	requestedAll   map[string]bool                 // resources of which the process listed or watched all objects
	listPages      map[watchScope][]history.Object // pages of lists that are not complete yet
	// podStateSince contains, for each pod, the record that last changed the pod's labels
	// or controllerRef, or whether it is active. The value is the record's sequence number.
	// formerPods contains the earlier states of pods in the recent window.
	podStateSince map[types.UID]int64
	formerPods    map[types.UID][]cachedPodState
	// podVersionsSince contains the versions of each pod in the recent window. Two versions
	// that are equal for the scale-down order count as one.
	podVersionsSince map[types.UID][]cachedVersion[*objects.Pod]
	// firstCachedAt contains the time when each pod first appeared in the cache.
	firstCachedAt map[types.UID]time.Duration
	podVersions   podVersions
	// relisted is true if the current change is a list. A worker may then read any mix of
	// old and new objects, because a cache applies the objects of a list one after another.
	relisted bool
}

// ownerState contains the expectations of one process for one owner of pods. The
// expectations are the outstanding calls of the process, and the bounds of spec.replicas
// since the process was last idle.
type ownerState struct {
	process *process
	uid     types.UID // of the owner
	closed  bool      // the owner no longer exists and no call is outstanding, so the state cannot change any more

	creates outstandingCalls
	deletes outstandingCalls

	// excessObserved counts pods of this owner that appeared in the cache without a
	// response that names them. A controller that counts additions takes these pods for its
	// own creates (allowed behaviors lost-response, client-retries).
	excessObserved   int
	excessObservedAt time.Duration
	// observedBeforeAnswer contains pods that appeared in the cache while creates were in
	// flight. The response to one of these creates may still name them.
	observedBeforeAnswer map[types.UID]bool

	// createBound is the maximum number of pods after creates, deleteBound the minimum after
	// deletes. Both are spec.replicas. If the owner is terminating or not in the cache,
	// createBound is 0 and deleteBound is unlimited: no create and no delete is allowed.
	createBound rangeSinceIdle
	deleteBound rangeSinceIdle
	// gained and lost count the active pods that the owner gained and lost in the cache for
	// other reasons than calls of this process.
	gained countSinceIdle
	lost   countSinceIdle
	// statusBounds are the values that the process may report in the owner's status.
	statusBounds statusBounds

	// synced is true if the cache contains the owner and the cache of pods has synced.
	synced    bool
	podCounts podCounts // after the last update from the cache
	// selector is the owner's selector. selectorChanged is true if the selector has changed
	// since the process started.
	selector        string
	selectorChanged bool
	// templates contains the owner's templates that were delivered, the latest last.
	templates []*objects.Template
}

// outstandingCalls contains the creates, or the deletes, of an ownerState whose effect the
// process cannot have observed yet.
type outstandingCalls struct {
	inFlight         map[uint64]*call    // sent, without a response
	unobserved       map[types.UID]*call // succeeded, but the cache does not contain the effect on the pod
	oldestUnobserved time.Duration       // when the oldest of unobserved was sent, or earlier
	expired          map[types.UID]*call // unobserved for longer than expectationsTimeout
}

// rolloutState contains the versions of one Deployment and of its ReplicaSets that one
// process cached in the recent window.
//
// Deployments and ReplicaSets arrive through different watches, which may be delayed
// independently. The controller may therefore have acted on every combination of a version
// of the Deployment and a state of the ReplicaSets.
type rolloutState struct {
	decisionWindow
	process     *process
	uid         types.UID
	deployments []cachedVersion[*objects.Deployment]
	replicaSets []cachedVersion[replicaSetsState]
	// statusWrittenAt is when the process last got a successful response to a status write.
	statusWrittenAt time.Duration
	// ownWrites contains the ReplicaSets that responses to the process's own writes
	// returned, until the cache contains that version or a newer one. A controller may act
	// on either version (allowed behavior lost-response).
	ownWrites map[types.UID]*objects.Owner
	// writtenFrom maps each version of a ReplicaSet that the process wrote to the version
	// that the write was based on. Entries older than the recent window are removed.
	writtenFrom map[objects.VersionKey]writeOrigin
	// takenNames contains, for each name of a new ReplicaSet, the time when the process
	// last got AlreadyExists for it.
	takenNames map[string]time.Duration
	// delayedAt is when a call for the Deployment last failed or took longer than lag. Up to
	// conflictsMax consecutive conflicts do not count as failures. failuresInARow counts
	// failures since the last success.
	delayedAt      time.Duration
	failuresInARow int
	// ownershipUnclearAt is when the cache last contained a ReplicaSet that the controller may
	// or may not have counted as the Deployment's.
	ownershipUnclearAt time.Duration
}

// serviceState contains the versions of one Service and its Endpoints that one process
// cached in the recent window.
type serviceState struct {
	decisionWindow
	name      objectName // of the Service
	service   presence
	endpoints presence
	// services contains the versions of the Service in the recent window. nil means that
	// the cache did not contain the Service.
	services []cachedVersion[*objects.Service]
	// version is the highest resourceVersion of the Endpoints that was ever in the cache, and
	// when it first appeared there.
	version cachedVersion[history.Version]
	// answered is when the process last got a response to a write of the Endpoints.
	// lastWriteFailed is true if that write failed. The process may then have read the
	// Endpoints from the API server instead of its cache.
	answered        time.Duration
	lastWriteFailed bool
}
