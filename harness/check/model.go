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
//   - call: one request of the subject to the API server, with its purpose (create a pod, write
//     a status, and so on). A call is in flight until the history contains its response.
//   - ownerState: the expectations of one process for one ReplicaSet or ReplicationController,
//     which comments call an owner of pods. Requests, responses and changes of the caches
//     update the expectations.
//   - statusBounds: the values that the process may write to the status of an owner of pods.
//   - rolloutState: the versions of one Deployment and its ReplicaSets that one process
//     cached in the recent window.
//   - scaling: a call that sets the spec.replicas of a ReplicaSet, with the cached versions
//     that may justify it.
//   - serviceState: the versions of one Service and its Endpoints that one process cached in
//     the recent window.
//   - metadataSet: the metadata of objects of all kinds. The set exists only if a generic
//     controller is under test: one that reconciles a kind whose fields the model does not know.
//   - genericCall: a write of a generic controller.
//   - leaseHolder: whether a process holds the leader-election lease, and until when.
//   - pausedTime: for how long a process was paused. The clock of the process is behind by this
//     time.
//
// A checker reads the effects of the current record from the fields of Model: sent, answered,
// changedOwners, events, endedIdle, died and delivered. For each call, the model says which
// versions may have justified the call and which other calls were outstanding. It also says
// whether the process held the lease.
//
// The version on which a controller acted may be older than the newest cached version,
// because workers and the client's rate limit delay a write. The recent window of an object is
// the period in which the cache must have contained that version. The window ends when the
// process sends the write. It begins at the latest of these times:
//
//   - batchTime before the last request for the object that ended a quiet period. A quiet
//     period is a time of at least batchTime in which no request for the object was in flight;
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
// that process, which stops while the process is paused or gets no CPU time.

// Model is what checkers know about a run after the current record of the history. It contains
// the objects in etcd, and the informer caches and requests of each process. It also contains the
// effects of the current record.
//
// The runner updates the Model with each record, and then calls every checker with the Model. The
// size of a Model does not depend on the length of the history.
type Model struct {
	decoder   *objects.Decoder
	settings  Settings
	tested    *testedControllers
	processes map[string]*process     // the running processes of the subject, by name
	ended     map[string]bool         // true for the name of each process that ended and has not started again
	calls     map[uint64]*call        // requests in flight, by request ID
	streams   map[uint64]*watchStream // open watches, and lists without a recorded response, by request ID

	committed *objectSet    // the latest version of each object in etcd
	issues    *issueTracker // the known upstream issues that may keep objects from converging
	start     history.Start
	phase     history.PhaseName // the current phase of the run, such as settle

	// pauses contains how long each process was paused, by process name. A process that was never
	// paused has no entry.
	pauses map[string]*pausedTime
	// stalls contains the times in which gauntlet or a process got no CPU time. clocks contains the
	// latest time on the clock of each process, by process name; see clockOf.
	stalls stalls
	clocks map[string]time.Duration

	// The fields below describe the current record. A pointer is nil if the record has no such
	// effect.

	// now is the time of the current record, as an offset from the start of the run. processTime
	// is the same time on the clock of the process that the record names. That clock stops while
	// the process is paused or gets no CPU time.
	processTime, now time.Duration
	seq              int64          // the sequence number of the current record
	sent             *call          // the request that the current record contains; nil for a watch request
	endedIdle        *process       // the process whose idle period ended with the request in sent
	possiblyLost     []*call        // the creates and deletes of pods whose response a broken connection may have lost
	answered         *answeredCall  // the request whose response the current record contains, with that response
	changedOwners    []ownerChange  // the ReplicaSets and ReplicationControllers that changed in a process's caches, or whose pods did
	events           []enqueueEvent // the work queue keys that the current record may have enqueued
	died             *process       // the process that ended without being stopped by gauntlet
	delivered        *process       // the process that received the list or watch event in the current record
}

// testedControllers contains the controllers under test. Each controller is a row of the table
// kube.Controllers.
type testedControllers struct {
	rows []kube.Controller
	// generic contains the generic controllers among rows. A controller is generic if the model
	// does not know the fields of the kind that the controller reconciles. Only general checks
	// apply to generic controllers.
	generic []kube.Controller
}

// answeredCall is a request of a controller under test together with the response. Checkers get it
// when the current record is the response.
type answeredCall struct {
	*call
	response *history.Response
}

// ownerChange says that a ReplicaSet or ReplicationController, or one of its pods, changed in the
// caches of a process. The process may then sync this owner.
type ownerChange struct {
	*ownerState
	objectChanged bool // true if the ReplicaSet or ReplicationController itself changed, false if only its pods did
	// expired contains the pod counts before the change. It is nil unless creates or deletes of the
	// process expired since the previous change. The process may then act on these counts.
	expired *podCounts
}

// enqueueEvent is a work queue key that a list or watch event may have enqueued. After such an
// event, a controller may sync the object at once, without waiting for its back-off.
type enqueueEvent struct {
	workQueueKey
	objectChanged bool // true if the object that the key names changed, false if only an object that it owns or selects did
}

// workQueueKey is one object's key in a work queue of a process. A Service is identified by the
// field service, any other object by the field uid.
type workQueueKey struct {
	process *process
	uid     types.UID
	service objectName
}

// process is one run of the binary under test, between its start and its end. After a restart, the
// model uses a new value with empty caches, work queues and expectations.
type process struct {
	name        string
	ended       bool // true after the binary has exited, was stopped or was restarted
	tested      *testedControllers
	view        *view                     // the informer caches of the process
	ownerStates map[types.UID]*ownerState // the state of each ReplicaSet and ReplicationController, by UID
	// rollouts contains what the model knows about each Deployment in this process, by the
	// Deployment's UID.
	rollouts map[types.UID]*rolloutState
	// serviceStates contains what the model knows about each Service and its Endpoints in this
	// process. The key is the name of the Service.
	serviceStates map[objectName]*serviceState
	// startupOrphans contains the UIDs of the Endpoints that had no Service when the caches of
	// both had synced. The process must delete these Endpoints. The map is nil until both caches
	// have synced.
	startupOrphans map[types.UID]bool

	// idleAfter is how long the process must send nothing before the model considers it idle. The
	// model assumes that an idle process has no sync in progress.
	idleAfter time.Duration
	// batchTime is how long the client's rate limit may delay the last request of a batch of
	// creates or deletes. After batchTime without a request in flight for an object, no earlier
	// decision is still waiting. The process then decides on its next request for the object at
	// most batchTime before sending it.
	batchTime     time.Duration
	callsInFlight int // number of requests without a response, except watches and requests for leases
	// lastActivity is when the process last sent a request or got a response. Watches and requests
	// for leases do not count.
	lastActivity time.Duration
	// clientRetries contains the failed requests that client-go may resend without a new sync of
	// the controller (allowed behavior client-retries). It maps the verb and object of the
	// request (call.key) to the time of the failure.
	clientRetries map[string]time.Duration
	// idlePeriods counts the periods in which the process was idle: it had sent nothing for
	// idleAfter and awaited no response. idleUntil is the end of the last such period.
	idlePeriods int
	idleUntil   time.Duration
	// disconnectedAt is when a request of the process last got no response, or when a watch last
	// ended. The connection may then have failed, and with it requests that did not reach the proxy.
	disconnectedAt time.Duration
	// successes contains the creates and deletes of pods that succeeded at most lag (1 s) before the
	// last of them.
	successes []answeredWrite
	// prunedAt is when the model last removed pod states older than decisionWindowMax (90 s). The
	// model also removes old states when the process is idle (sends nothing for a while). A busy
	// process may never be idle.
	prunedAt time.Duration

	// deleting contains each pod that the process is deleting. The value is the state of the
	// ReplicaSet or ReplicationController for which the process deletes the pod. The model removes
	// a pod when the delete fails, or when the pod is no longer active in the cache. A change of
	// the pod's controllerRef in the cache does not remove the pod.
	deleting map[types.UID]*ownerState
	// adopted maps each pod that the process adopted to the UID of the new owner. The model adds a
	// pod when the adoption succeeds. It removes the pod when the cache has caught up, that is,
	// after a complete list or a bookmark. The cache then contains the new controllerRef, or no
	// longer contains the pod.
	adopted map[types.UID]types.UID
	// liveReads contains, for each ReplicaSet or ReplicationController, the last successful GET
	// request of the process to the API server. A controller must read an owner in this way
	// before it adopts a pod. The keys are UIDs.
	liveReads map[types.UID]liveRead
	// lastReads contains the last answered GET request of the process for each ReplicaSet,
	// ReplicationController and Deployment.
	lastReads map[objectName]lastRead
	// failedWrites contains when the last write of each of these objects failed.
	failedWrites map[objectName]time.Duration
	lease        leaseHolder
	// leaseFailed is true in two cases, in which the leader may exit:
	//
	//   - A request for a lease failed with a status other than 404 and 409.
	//   - The process ended while it awaited the response to such a request, or before it confirmed
	//     the response by another update of the lease. It was also too late to renew the lease in
	//     time (mayGiveUp).
	//
	// leaseLost is when the last such request failed, or when the process ended.
	leaseLost   time.Duration
	leaseFailed bool
}

// call is one request of a controller under test to the API server, with any verb except watch. It
// contains what checkers need to know about the request. For example, it names the object that the
// controller was reconciling.
type call struct {
	process *process
	id      uint64        // the ID of the request
	seq     int64         // the sequence number of the record that contains the request
	sentAt  time.Duration // when the request was sent, on the clock of the process
	verb    callVerb
	// key contains the verb, resource, subresource, namespace and name of the request. A retry of a
	// request has the same key. The key of a pod create ends with the UID of the pod's owner. All
	// creates for one owner therefore share a key.
	key string
	// queueKey is the work queue key that the controller's worker was processing when it sent the
	// request. It is the zero value if the model cannot tell.
	queueKey workQueueKey
	// ownerState is the state of the ReplicaSet or ReplicationController whose pods or status the
	// request writes. It is nil if the owner is unknown. It is also nil if the request writes
	// neither pods nor the status of an owner.
	ownerState *ownerState
	// rollout is the state of the Deployment that the worker was syncing. It is nil for requests
	// of other controllers, and if the Deployment is unknown.
	rollout *rolloutState
	// scaling describes the new spec.replicas of the ReplicaSet that the request writes. It is
	// nil if the request does not set the spec.replicas of a ReplicaSet.
	scaling *scaling
	// fromVersion is the resourceVersion of the ReplicaSet that the controller read before it
	// sent this request. Only a request that sets the spec.replicas of a ReplicaSet has a
	// fromVersion.
	fromVersion history.Version
	// holders contains the ReplicaSets that had the name of the ReplicaSet that the request
	// creates. It is nil for other requests.
	holders *nameHolders
	// serviceState is the state of the Service whose Endpoints the request writes. It is nil if
	// the request does not write Endpoints.
	serviceState *serviceState
	// generic describes a write of a generic controller, one that reconciles a kind whose fields
	// the model does not know. It is nil for requests of other controllers.
	generic *genericCall
	// pod is the pod that the request deletes, adopts or releases, in the last version that the
	// cache contained. It is nil if the cache contained no version of the pod that the controller
	// may have acted on.
	pod *objects.Pod
	// object names the ReplicaSet, ReplicationController or Deployment of a get, create, update or patch,
	// without a subresource other than the status. It is the zero value for other requests.
	object objectName
	reads  bool // true if the request is a get of that object
	// ownershipChange says whether the request adopts or releases the pod. It is empty unless the
	// verb is callAdoptOrRelease.
	ownershipChange ownershipChange

	// update describes the update that the request makes. It is nil if the request is no update,
	// and for updates of pods and dry runs.
	update *objectUpdate
	// writesLease is true if the request creates or updates a leader-election lease. It is false
	// for reads.
	writesLease bool
	// effectObserved is true if the request deletes a pod that became inactive in the cache
	// before the response arrived. After the response, the process then has nothing to wait for.
	effectObserved bool
	// createdVersion is the resourceVersion of the pod that a successful pod create returned. It
	// is 0 for other requests.
	createdVersion history.Version
	// mustReportFailure is true if the request writes the status of a ReplicaSet or
	// ReplicationController after a failure. A create or delete of its pods has failed since the
	// previous status write. The new status must then contain the condition ReplicaFailure.
	mustReportFailure bool
}

// genericCall describes a write of an object that a generic controller may have sent. A generic
// controller reconciles another kind than ReplicaSet, ReplicationController, Deployment and
// Service, such as Job.
type genericCall struct {
	kind   string          // the kind that the generic controller reconciles; "" if unknown
	object *objectMetadata // the cached version of the written object; nil if it is not cached
	// unnamed is true if the request creates an object with generateName. The API server then
	// chooses the name.
	unnamed bool
	deletes bool // true if the call deletes an object
}

// callVerb says for which purpose a controller under test sent a request, such as creating a pod
// for a ReplicaSet.
type callVerb int

// The purposes for which a controller sends a request.
const (
	callOther          callVerb = iota // a request for any other purpose
	callLease                          // reads or writes a leader-election lease
	callCreatePod                      // creates a pod for a ReplicaSet or ReplicationController
	callDeletePod                      // deletes a pod
	callAdoptOrRelease                 // updates or patches a pod, to adopt or release it
	callStatus                         // updates or patches a ReplicaSet, ReplicationController or Deployment, in most cases its status
	callReadOwner                      // reads a ReplicaSet or ReplicationController from the API server
)

// leaseResource is the resource name of leader-election leases in the records of a history.
const leaseResource = "leases.coordination.k8s.io"

// objectSet contains the objects that the model knows at one time, with indexes for fast lookup.
// One objectSet contains the objects in etcd. Each process has another objectSet for its
// informer caches.
//
// When a pod changes, the set updates the pod counts of the owner. To count all pods for each
// record would be slow.
type objectSet struct {
	pods        map[types.UID]*objects.Pod
	owners      map[types.UID]*objects.Owner // ReplicaSets and ReplicationControllers
	deployments map[types.UID]*objects.Deployment
	services    map[types.UID]*objects.Service
	endpoints   map[types.UID]*objects.Endpoints
	uidByName   map[objectName]types.UID // the UID of each object, by resource, namespace and name

	controlled  map[types.UID]map[types.UID]*objects.Pod   // pods with a controllerRef, by the UID in the controllerRef and by their own UID
	orphans     map[string]map[types.UID]*objects.Pod      // pods without a controllerRef, by namespace and UID
	podCounts   map[types.UID]*podCounts                   // counts of pods, by the UID of the ReplicaSet or ReplicationController
	replicaSets map[types.UID]map[types.UID]*objects.Owner // ReplicaSets with a controllerRef, by the UID in the controllerRef and by their own UID

	// reassigned contains the UIDs of the ReplicaSets and ReplicationControllers whose controllerRef has
	// changed. A Deployment may have adopted such a ReplicaSet.
	reassigned map[types.UID]bool

	// changedObjects contains, by UID, the ReplicaSets, ReplicationControllers and Deployments
	// that changed since the last call of clearChanges.
	//
	// A ReplicaSet or ReplicationController also counts as changed if one of its pods or a
	// matching orphan changed. A Deployment also counts as changed if one of its ReplicaSets
	// changed. The map also contains the UIDs of other controllers, such as Jobs, whose pods
	// changed.
	changedObjects map[types.UID]change
	// changedServices contains the Services that changed since the last call of clearChanges. A
	// Service also counts as changed if its Endpoints, or a pod that matches its selector, changed.
	changedServices map[objectName]change
	// podAddresses contains the IP addresses and ports of each pod, by the pod's UID. It is filled
	// only in the set of etcd's objects, not in the caches of processes.
	podAddresses map[types.UID]*objects.PodAddress
	// deletedServices contains the name of each deleted Service whose Endpoints still exist. The
	// controller must delete these Endpoints.
	deletedServices map[objectName]bool
	// metadata contains the metadata of all objects of all kinds. It is nil unless a generic
	// controller is under test. Such a controller reconciles a kind whose fields the model does not
	// know.
	metadata *metadataSet
	// noLongerActive contains the UIDs of the active pods that became inactive or were deleted
	// since the last call of clearChanges. The process has then observed its deletes of these
	// pods.
	noLongerActive []types.UID
}

// metadataSet contains the metadata of objects of any kind. Only checks of generic controllers read
// it: controllers that reconcile another kind than ReplicaSet, ReplicationController, Deployment
// and Service.
type metadataSet struct {
	tested     *testedControllers
	byUID      map[types.UID]*objectMetadata
	byResource map[string]map[types.UID]*objectMetadata // by resource and by the object's UID
	uidByName  map[objectName]types.UID
	// childResources contains the resources of objects whose controllerRef names an object that a
	// generic controller under test reconciles. An example is pods, for the Job controller. A
	// generic controller is one whose kind the model does not know in detail.
	childResources map[string]bool
	// changed is true if any object in the set has changed since the last call of the function
	// clearChanges.
	changed bool
	// decoder decodes the objects that generic controllers (those without a contract) reconcile. It
	// is nil unless the type Settled uses the set to decide whether these objects have converged.
	decoder *objects.Decoder
	// terminating contains the objects of all kinds that have a deletionTimestamp, by UID. It is
	// empty if decoder is nil.
	terminating map[types.UID]*objectMetadata
}

// objectMetadata is the metadata of one version of an object, such as its ownerReferences and
// generation.
type objectMetadata struct {
	history.Ref
	controller  history.Owner   // the controllerRef; its UID is empty if the object has no controllerRef
	owners      []history.Owner // all ownerReferences, including the controllerRef
	generation  int64
	terminating bool
	// ownerChanged is true if the object's controllerRef has changed since the object was added to
	// the set.
	ownerChanged bool
	object       *history.Object // the object itself; nil if no generic controller reconciles it, or if metadataSet.decoder is nil
}

// change says what changed for one object since the last call of objectSet.clearChanges. It says
// whether the object itself changed, and which new pods it controls.
type change struct {
	objectChanged bool        // true if the object itself changed, false if only its pods, ReplicaSets or Endpoints did
	newPods       []types.UID // UIDs of pods that the object controls and that are new in the set
}

// podCounts counts the pods of one ReplicaSet or ReplicationController, which is called the
// owner here. Except for terminating and terminatingReplicas, the fields count only active pods.
type podCounts struct {
	controlled          int // pods whose controllerRef names the owner
	replicas            int // controlled pods that the owner's selector matches
	fullyLabeled        int // replicas that have all labels of the pod template
	ready               int // replicas that are ready
	orphans             int // pods without a controllerRef that the owner's selector matches; the owner may adopt these pods
	terminating         int // controlled pods that have a deletionTimestamp
	terminatingReplicas int // terminating pods that the owner's selector matches and whose phase is neither Failed nor Succeeded
}

// view contains the informer caches of one process. It also contains earlier versions of pods. A
// worker may still act on a version that it read before the cache changed.
type view struct {
	*objectSet
	decoder *objects.Decoder
	tested  *testedControllers
	// reachedVersion contains the highest resourceVersion that lists and watch events have
	// delivered, by resource. The caches contain the effect of every write up to this
	// resourceVersion.
	reachedVersion map[string]history.Version
	// requestedAll contains the resources that the process has listed or watched without a
	// selector, and so without leaving out objects. Only the caches of these resources must have
	// synced before the process writes.
	requestedAll map[string]bool
	// listPages contains the objects of paged lists whose last page has not arrived yet. The key
	// says which objects such a list covers, for example all pods of a namespace.
	listPages map[watchScope][]history.Object
	// podStateSince maps each pod in the cache to the sequence number of the record that delivered
	// the pod's current state. A new state begins when the labels or the controllerRef change, or
	// when the pod becomes active or inactive.
	podStateSince map[types.UID]int64
	// formerPods contains the earlier states of each pod in the cache, by the pod's UID. It goes
	// back as far as a worker may still act on a state (the recent window).
	formerPods map[types.UID][]cachedPodState
	// podVersionsSince contains the cached versions of each pod on which a worker may still act, by
	// the pod's UID. It leaves out a version if all fields that decide the scale-down order are as
	// in the previous version.
	podVersionsSince map[types.UID][]cachedVersion[*objects.Pod]
	// firstCachedAt contains the time when each pod first appeared in the cache, by the pod's UID.
	// The check recreate ignores pods that appeared too late for the decision of the process.
	firstCachedAt map[types.UID]time.Duration
	// podVersions contains recent versions of pods with their IP addresses and ports. Checks of
	// Endpoints read it.
	podVersions podVersions
	// relisted is true if the current record is a list that replaced the cached objects. An
	// informer applies the objects of a list one after another. A worker may therefore read any mix
	// of old and new objects.
	relisted bool
}

// ownerState is what the model knows about one ReplicaSet or ReplicationController (the owner) in
// one process. It includes the process's expectations: the creates and deletes of pods whose
// effect its cache does not show yet.
type ownerState struct {
	process *process
	uid     types.UID // the UID of the owner
	// closed is true if the owner is not in the cache, and none of its creates and deletes is
	// outstanding. This ownerState cannot change any more, so the model deletes it.
	closed bool

	// adopted contains the pods that the process has adopted for this owner, and that have not changed
	// in the cache since. The value is the cached version of the pod, in which it has no controller.
	adopted map[types.UID]history.Version

	creates outstandingCalls // outstanding creates of the owner's pods
	deletes outstandingCalls // outstanding deletes of the owner's pods

	// extraObserved counts the extra pods of this owner. An extra pod is one that appeared in the
	// cache although no response to a create of this process named it. For example, the response
	// was lost. A controller that only counts added pods takes extra pods for its own (allowed
	// behaviors lost-response, client-retries). extraObservedAt is when the last extra pod
	// appeared.
	extraObserved   int
	extraObservedAt time.Duration
	// observedBeforeAnswer contains the UIDs of pods that appeared in the cache while a create was
	// in flight. The response to that create may still name one of them. Until then, extraObserved
	// counts the pod as one that the process did not create.
	observedBeforeAnswer map[types.UID]bool

	// createBound is the highest number of pods that the owner may have after a create. deleteBound
	// is the lowest number that it may have after a delete. Both come from the values of
	// spec.replicas that the cache contained.
	//
	// If the owner is terminating or not in the cache, the process must neither create nor delete
	// pods. createBound is then 0, and deleteBound is the constant unlimited, so that every create
	// and every delete is a violation.
	createBound rangeSinceIdle
	deleteBound rangeSinceIdle
	// gained counts the active pods that the owner gained in the cache, without pods that this
	// process created. lost counts the active pods that the owner lost in the cache, without pods
	// that this process deleted. The process may have decided on a request before it received the
	// events of these pods.
	gained countSinceIdle
	lost   countSinceIdle
	// lateObserved counts the pods of expired creates that reached the cache. The process may have
	// decided on a request before it received the events of these pods.
	lateObserved countSinceIdle
	// statusBounds contains the lowest and the highest value that the process may write to each
	// field of the owner's status.
	statusBounds statusBounds

	// synced is true if the cache contains the owner, and a list or watch event of pods has
	// arrived. Before that, the process can have no expectations for the owner.
	synced bool
	// removed is when the cache last lost the owner, on the clock of the process.
	removed   time.Duration
	podCounts podCounts // counts of the owner's pods in the cache
	// selector is the owner's spec.selector. selectorChanged is true if the process has received
	// versions of the owner with different selectors. Some checks then skip the owner, because
	// they do not know which selector the process used.
	selector        string
	selectorChanged bool
	// templates contains the last pod templates of the owner that the cache contained, oldest
	// first. The process may create pods from any of them. The field contains at most templatesMax
	// templates.
	templates []*objects.Template
}

// outstandingCalls contains either the creates or the deletes of one owner's pods whose effect is
// not in the cache yet.
type outstandingCalls struct {
	// inFlight contains the requests without a response, by request ID.
	inFlight map[uint64]*call
	// unobserved contains the successful requests whose effect has not reached the cache. The key
	// is the UID of the pod in the request. The effect of a create has reached the cache when the
	// cache contains the pod. The effect of a delete has reached it when the pod is no longer
	// active there.
	unobserved map[types.UID]*call
	// oldestUnobserved is a lower bound: no request in unobserved was sent before this time. While
	// it is recent, no request can expire, and the model need not search for expired ones.
	oldestUnobserved time.Duration
	// expired contains the successful requests whose effect did not reach the cache within
	// expectationsTimeout (about 5 minutes). The key is the UID of the pod in the request.
	expired map[types.UID]*call
}

// rolloutState contains the cached versions of one Deployment and its ReplicaSets on which one
// process may have acted. These are the versions of the recent window.
//
// Deployments and ReplicaSets arrive through different watches, and each watch may be late by a
// different amount. The controller may therefore have acted on any combination of a Deployment
// version and a state of the ReplicaSets.
type rolloutState struct {
	decisionWindow
	process     *process
	uid         types.UID                            // the UID of the Deployment
	deployments []cachedVersion[*objects.Deployment] // versions of the Deployment, oldest first
	replicaSets []cachedVersion[replicaSetsState]    // states of all its ReplicaSets, oldest first
	// statusWrittenAt is when the process last got a successful response to a write of the
	// Deployment's status. recordStatusWrite needs it to forget versions on which the process can
	// no longer act.
	statusWrittenAt time.Duration
	// statusSentAt is when the process sent that write, and statusVersion is the resourceVersion in
	// its response.
	statusSentAt  time.Duration
	statusVersion history.Version
	// ownWrites contains the ReplicaSets that the API server returned to the process, by UID. The
	// model removes a ReplicaSet when the cache contains the same or a newer version. Until then,
	// the controller may act on the returned version or on the older one in the cache.
	ownWrites map[types.UID]*objects.Owner
	// writtenFrom maps each version of a ReplicaSet that the process wrote to the version that
	// the process had read before. The model removes entries on which the process can no longer
	// act.
	writtenFrom map[objects.VersionKey]writeOrigin
	// takenNames contains the names of ReplicaSets that the process could not create because of
	// AlreadyExists. Only such a name justifies a higher collisionCount. The map contains the
	// holders of each name at the last such response.
	takenNames map[string]*nameHolders
	// delayedAt is when a request for the Deployment last failed or took longer than lag (1 s).
	// Checks then allow a late next step of the rollout. A conflict does not count if it is among
	// the first conflictsMax failures in a row.
	delayedAt time.Duration
	// failuresInARow counts the requests for the Deployment that failed since the last successful
	// one. A conflict among the first conflictsMax of these failures does not set delayedAt.
	failuresInARow int
	// ownershipUnclearAt is when it was last unclear which ReplicaSets belong to the Deployment.
	// The cache then contained a ReplicaSet that the controller may or may not count. Such a
	// ReplicaSet matches the Deployment's selector, and is an orphan or terminating.
	ownershipUnclearAt time.Duration
}

// nameHolders contains the ReplicaSets that had the name of a ReplicaSet that a process creates.
// Such a ReplicaSet may be the reason for the response AlreadyExists, and so for a higher
// collisionCount.
type nameHolders struct {
	name objectName
	// committed is the ReplicaSet that certainly had the name in etcd when the API server received
	// the create. It is nil if there is no such ReplicaSet, or if the model cannot tell.
	committed *objects.Owner
	// cached contains two ReplicaSets with this name in the cache. The first was there when the
	// create was sent, the second when the response arrived. An element is nil if the cache
	// contained no such ReplicaSet. The controller may have acted on either.
	cached [2]*objects.Owner
	// rejectedAt is when the response AlreadyExists arrived. It is 0 for another response.
	rejectedAt time.Duration
}

// serviceState contains the cached versions of one Service and its Endpoints on which one process
// may have acted. These are the versions of the recent window.
type serviceState struct {
	decisionWindow
	name      objectName // the name of the Service
	service   presence   // whether the cache contains the Service, and whether the controller manages its Endpoints
	endpoints presence   // whether the cache contains the Endpoints, and whether they are a leader-election record
	// services contains the versions of the Service, oldest first. A nil value means that the cache
	// did not contain the Service from that time on.
	services []cachedVersion[*objects.Service]
	// version is the highest resourceVersion of the Endpoints in the cache so far. Its time is when
	// the cache first contained this version. The process cannot have decided before that time on a
	// write that is based on this version.
	version cachedVersion[history.Version]
	// answered is the time of the last response that the process got to a write of the Endpoints.
	// lastWriteFailed is true if this response was an error. After a failed write, the process
	// may have read the Endpoints from the API server before the next write.
	answered        time.Duration
	lastWriteFailed bool
	// written is the resourceVersion in the response to the last write of the Endpoints. It is 0 if
	// the process got no such response: the write failed, or its response was lost.
	written history.Version
	// decided is the earliest time at which the process may have decided on its last write of the
	// Endpoints, and decidedBefore that of the write before.
	decided, decidedBefore time.Duration
}
