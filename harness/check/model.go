package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Model is what the records up to some point of a history add up to. It is
// brought up to date once for each record, before the judges see that record.
// It grows with the objects and calls that are alive, not with the history.
type Model struct {
	decoder   *decoder
	settings  Settings
	processes map[string]*process     // the living, by name
	ended     map[string]bool         // the names of those that ended and have not started again
	calls     map[uint64]*call        // in flight
	streams   map[uint64]*watchStream // watches, and lists of which an answer is due

	committed *objectSet
	start     history.Start
	phase     history.PhaseName

	// pauses is how far behind the present each process is that was ever paused.
	pauses map[string]*pausedTime

	// What the current record means. processTime is when it happened by the clock of the
	// process that it concerns, which stands still while the process does; now is
	// by everybody else's.
	processTime, now time.Duration
	seq              int64
	sent             *call          // a call was sent
	endedIdle        *process       // with that call a process ended an idle spell
	answered         *answeredCall  // a call was answered
	changedOwners    []ownerChange  // the view of an owner changed
	events           []enqueueEvent // there was news of something
	died             *process       // a process died
}

// answeredCall is a call with its answer.
type answeredCall struct {
	*call
	response *history.Response
}

// ownerChange is an owner of whom a process was just told something.
type ownerChange struct {
	*ownerState
	objectChanged bool // something about the owner itself, not only about pods
}

// enqueueEvent is news that may have put a key on a work queue.
type enqueueEvent struct {
	workQueueKey
	objectChanged bool // news of the object itself
}

// workQueueKey is a key of one of a process' work queues: an owner of pods or a
// Deployment by its UID, a Service by its name.
type workQueueKey struct {
	process *process
	uid     types.UID
	service objectName
}

// process is one life of one instance of the subject. A restart begins another:
// nothing that a process knew or waited for outlives it.
type process struct {
	name        string
	ended       bool
	view        *view
	ownerStates map[types.UID]*ownerState // by owner
	// rollouts are the accounts with Deployments, serviceStates those with Services.
	rollouts      map[types.UID]*rolloutState
	serviceStates map[objectName]*serviceState
	// startupOrphans is the Endpoints that had no Service when the process began; nil
	// until it has been told of all there is.
	startupOrphans map[types.UID]bool

	// idleAfter is for how long it must do nothing to count as idle.
	idleAfter time.Duration
	// batchTime is in what time a whole batch gets past its client's rate limit: a
	// decision about one object is no older than that, when no call is under way.
	batchTime     time.Duration
	callsInFlight int           // calls in flight that are part of its work
	lastActivity  time.Duration // when it last sent such a call or was answered
	// clientRetries is the calls that the client may be about to repeat by itself, with
	// the controller none the wiser, and since when (client-retries).
	clientRetries map[string]time.Duration
	// idlePeriods counts the times that it was idle; idleUntil is when that last ended.
	idlePeriods int
	idleUntil   time.Duration
	// prunedAt is when it was last seen to that nothing is kept of pods for longer than
	// decisionWindowMax: a process may never be idle.
	prunedAt time.Duration

	// deleting is for which owner the process deletes each pod that its view
	// shows active. The view may show the pod to be another's when it goes.
	deleting map[types.UID]*ownerState
	// adopted is the owner of each pod that the process was told it adopted,
	// before its view shows so.
	adopted map[types.UID]types.UID
	// liveReads is the last answered live read of each owner.
	liveReads map[types.UID]liveRead
	// lease is how it stands with the lease.
	lease leaseHolder
	// leaseLost is when a call for a lease last failed, or a leader that could not renew
	// it in time ended without an answer to one; leaseFailed, whether any has.
	leaseLost   time.Duration
	leaseFailed bool
}

// call is a request that is part of the subject's work.
type call struct {
	process         *process
	id              uint64
	seq             int64 // of the request's record
	sentAt          time.Duration
	verb            callVerb
	key             string          // equal for the same request sent again
	queueKey        workQueueKey    // the key of a work queue that it is part of; zero if none can be told
	ownerState      *ownerState     // of the owner whose pods it is for; nil if none can be told
	rollout         *rolloutState   // of the Deployment that it is for; nil if it is for none
	scaling         *scaling        // what it does to a ReplicaSet; nil if that keeps its replicas
	fromVersion     history.Version // of a ReplicaSet, that it was written from
	serviceState    *serviceState   // of the Endpoints that it writes; nil if it writes none
	pod             *pod            // that it deletes or claims, as the process has it; nil if never shown
	ownershipChange ownershipChange // of callAdoptOrRelease

	update            *objectUpdate   // what it updates; nil if it is another call
	writesLease       bool            // of callLease: it writes the lease
	effectObserved    bool            // of callDeletePod: the pod left the view before the answer
	createdVersion    history.Version // of callCreatePod: the pod's first version
	mustReportFailure bool            // of callStatus: it is the first to report a failure, or should be
}

// callVerb is what a call does, as far as checks care.
type callVerb int

const (
	callOther          callVerb = iota
	callLease                   // anything about leases: not work
	callCreatePod               // creates a pod for an owner
	callDeletePod               // deletes a pod
	callAdoptOrRelease          // writes a pod: adopts or releases it
	callStatus                  // writes an owner
	callReadOwner               // reads an owner live
)

const leaseResource = "leases.coordination.k8s.io"

// objectSet is a set of objects as someone has them: the truth, or the view of one
// process. It keeps count of each owner's pods, so that no check has to.
type objectSet struct {
	pods        map[types.UID]*pod
	owners      map[types.UID]*owner
	deployments map[types.UID]*deployment
	services    map[types.UID]*service
	endpoints   map[types.UID]*endpoints
	uidByName   map[objectName]types.UID

	controlled  map[types.UID]map[types.UID]*pod   // by the UID of the controller
	orphans     map[string]map[types.UID]*pod      // by namespace
	podCounts   map[types.UID]*podCounts           // of each owner
	replicaSets map[types.UID]map[types.UID]*owner // by the UID of the controller

	// changedObjects is the owners whose own version, pods or matching orphans have
	// changed since it was last cleared, and how; and the Deployments of which
	// that is true or one of whose ReplicaSets has changed.
	changedObjects map[types.UID]change
	// changedServices is the same of Services, by name: their own versions, their pods
	// and their Endpoints.
	changedServices map[objectName]change
	// podAddresses is how each pod is reached, of the truth only.
	podAddresses map[types.UID]*podAddress
	// deletedServices is the Services that were deleted while they had Endpoints, which
	// are still there.
	deletedServices map[objectName]bool
	// noLongerActive is the pods that have ceased to be active in the same time.
	noLongerActive []types.UID
}

// change is how an owner was touched.
type change struct {
	objectChanged bool        // by a version of its own, not only by pods
	newPods       []types.UID // pods it controls that were not there before
}

// podCounts counts the active pods that matter to an owner, and those that are on
// their way out.
type podCounts struct {
	controlled          int // it controls
	replicas            int // it controls, and its selector matches: what it manages
	fullyLabeled        int // of the replicas, those that carry every label of the template
	ready               int // of the replicas, those that are ready
	orphans             int // nobody controls, and its selector matches: what it may adopt
	terminating         int // it controls, and they are being deleted
	terminatingReplicas int // of the terminating, those that its selector matches and that have not ended
}

// view is what one process has been told: the objects as a cache that lists and
// watches has them, and what it may still remember of how they were before.
type view struct {
	*objectSet
	decoder *decoder
	// reachedVersion is how far each resource's lists and watches have come. What the
	// process wrote at a version up to there, it has been shown.
	reachedVersion map[string]history.Version
	requestedAll   map[string]bool                 // of which resources the process has asked for all
	listPages      map[watchScope][]history.Object // of lists of which more is to come
	// podStateSince is since which record each pod stands as it does to whoever may
	// claim it; formerPods is how pods stood before, of late.
	podStateSince map[types.UID]int64
	formerPods    map[types.UID][]cachedPodState
	// podVersionsSince is how each pod has stood of late among those that may be deleted.
	podVersionsSince map[types.UID][]cachedVersion[*pod]
	// firstCachedAt is when each pod came into view.
	firstCachedAt map[types.UID]time.Duration
	podVersions   podVersions
	// relisted: the present look is at a list, which a cache takes in one object
	// after another.
	relisted bool
}

// ownerState is the account of one process with one owner: what it has called for
// without having been shown the effect, and what its view asked of it.
type ownerState struct {
	process *process
	uid     types.UID // of the owner
	closed  bool      // nothing will be entered any more

	creates outstandingCalls
	deletes outstandingCalls

	// excessObserved counts pods of this owner that came into view though the process
	// was not told that it made them: a controller that counts arrivals takes
	// them for its own (lost-response and client-retries).
	excessObserved   int
	excessObservedAt time.Duration
	// observedBeforeAnswer is pods that came into view while creates were in flight, so that
	// an answer may yet say that the process made them.
	observedBeforeAnswer map[types.UID]bool

	// createBound is what creates must stay within, deleteBound what deletes must leave:
	// the replicas that the owner asks for, unless it is being deleted or is not
	// in view, when nothing may be created and nothing be deleted.
	createBound rangeSinceIdle
	deleteBound rangeSinceIdle
	// gained and left count the active pods that the owner won and lost in the
	// view otherwise than by this process' own hand.
	gained countSinceIdle
	lost   countSinceIdle
	// statusBounds is what the process may report of the owner.
	statusBounds statusBounds

	// synced: the process has seen the owner, and all pods at least once.
	synced    bool
	podCounts podCounts // as of the last look at the view
	// selector is the owner's; selectorChanged, that it has changed before our eyes.
	selector        string
	selectorChanged bool
	// templates is what the process was shown of the owner's template, the latest
	// last.
	templates []*template
}

// outstandingCalls is one direction of an ownerState.
type outstandingCalls struct {
	inFlight         map[uint64]*call    // sent and not answered
	unobserved       map[types.UID]*call // succeeded; the effect on the pod is not in view
	oldestUnobserved time.Duration       // when the oldest of unobserved was sent, or earlier
	expired          map[types.UID]*call // was unobserved for so long that it is waited for no more
}

// rolloutState is the account of one process with one Deployment: how it may have
// had it, and its ReplicaSets, in mind of late.
//
// The two come by different watches, each late in its own way, so that every
// version of the one may have been seen with every state of the other.
type rolloutState struct {
	decisionWindow
	process     *process
	uid         types.UID
	deployments []cachedVersion[*deployment]
	replicaSets []cachedVersion[replicaSetsState]
	// statusWrittenAt is when the process was last told that it had written the
	// Deployment's status.
	statusWrittenAt time.Duration
	// ownWrites is what the process was told it made of a ReplicaSet, until it is
	// shown that or newer. A controller may count by either (lost-response).
	ownWrites map[types.UID]*owner
	// writtenFrom says of each version that the process made of a ReplicaSet from which
	// one it did, as long as that may matter to a round that goes on.
	writtenFrom map[versionKey]writeOrigin
	// takenNames is when the process was last told of a name that it may not give to a
	// new ReplicaSet, since one has it.
	takenNames map[string]time.Duration
	// delayedAt is when a call for the Deployment last took long, or failed for more
	// than a moment, as one conflict does; failuresInARow, how many have failed since one did
	// not.
	delayedAt      time.Duration
	failuresInARow int
	// ownershipUnclearAt is when the process last had a ReplicaSet that may or may not count
	// as the Deployment's.
	ownershipUnclearAt time.Duration
}

// serviceState is the account of one process with one name of a Service and of
// its Endpoints: how it may have had the two in mind of late.
type serviceState struct {
	decisionWindow
	name      objectName // the Service's
	service   presence
	endpoints presence
	// services is the versions of the Service of late; nil says that there was none.
	services []cachedVersion[*service]
	// version is the highest of the Endpoints in view so far, and when it came first.
	version cachedVersion[history.Version]
	// answered is when the process was last answered to a write of the Endpoints, and
	// lastWriteFailed whether that failed: then it may have read what there is past its watch.
	answered        time.Duration
	lastWriteFailed bool
}
