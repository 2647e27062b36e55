"""Jobs over HTTP: listing them with their progress, stopping one, and undoing a redrive."""

from aiohttp import web

from warren.jobs.job import Job, JobKind, JobStep
from warren.jobs.permit import JobContext, Permit
from warren.management.auth import check_owner, is_monitor, login_vhosts, user_of
from warren.management.cluster_lists import reply_cluster_list
from warren.management.listing import Listing, reply_one
from warren.management.managed_node import ManagedNode
from warren.management.operation import ColumnsQuery, PageQuery, documented, paged
from warren.management.replies import RequestRefused, bad_request, done, error_reply, missing, reply
from warren.management.views.jobs import JobShape, job_view
from warren.queues.capabilities import taking_queue
from warren.queues.queue import PeekedMessage
from warren.queues.redrive_headers import redrive_number
from warren.session.vhost_services import VhostServices
from warren.vhost.message_move import MessageMove
from warren.vhost.move_router import UndoRouter
from warren.vhost.queue_scan import SelectionScan
from warren.vhost.undo_log import UndoLog

# A column by which the jobs of all nodes are sorted, newest first; it is not shown.
_AGE = "_age"
_STOPPED = "stopped by user '{}'"


@documented(query=PageQuery, response=paged(JobShape))
async def jobs(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """List the jobs of the virtual hosts in which the user has permissions, newest first."""
    now = node.now()
    listing = Listing(
        records=[job for job in reversed(node.jobs.by_id.values()) if _is_visible(request, node, job)],
        view=lambda job: job_view(job, now),
        columns={
            "name": lambda job: job.queue,
            "started_at": lambda job: job.started_at,
            "vhost": lambda job: job.vhost,
            _AGE: lambda job: now - job.started_at,
        },
        sort_keys=(_AGE,),
        is_paged=True,
        is_sorted=True,
        identity=lambda job: job.id,
    )
    return await reply_cluster_list(request, node, listing)


@documented(query=ColumnsQuery, response=JobShape)
def job(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Get a job."""
    return reply_one(request, job_view(_named(request, node), node.now()))


def stop_job(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Stop a job, or remove a finished job from the list."""
    found = _named(request, node)
    check_owner(request, found.user)
    if found.is_over:
        del node.jobs.by_id[found.id]
    else:
        found.stop(_STOPPED.format(user_of(request).name))
    return done()


@documented(responses={201: JobShape})
def undo_job(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Undo a redrive: start a job that moves back the messages not delivered since."""
    redrive = _named(request, node)
    check_owner(request, redrive.user)
    if redrive.kind is not JobKind.REDRIVE:
        raise bad_request("only a redrive can be undone: to undo a move, move the messages back")
    if not redrive.is_over or (redrive.undone_by is not None and not redrive.undone_by.is_over):
        raise bad_request("the redrive or its undo is still running: wait, or stop it first")
    if redrive.undo_log is None or not redrive.undo_log.count:
        raise bad_request("nothing of this redrive can be undone any more")
    check_job_limit(node)
    services = live_domain(node, redrive.vhost)
    place = JobContext(node.server, user_of(request), services, services)
    undo = _undoing(redrive, redrive.undo_log, place, node.jobs.new_id())
    redrive.undone_by = undo
    node.jobs.start(undo)
    return reply(job_view(undo, node.now()), 201)


def _undoing(redrive: Job, undo_log: UndoLog, place: JobContext, id: str) -> Job:
    """The job that moves back the messages in `undo_log`."""

    def fits(peeked: PeekedMessage) -> bool:
        return not peeked.attempts and redrive_number(peeked.message, redrive.id) is not None

    steps = []
    vhost = place.target.vhost
    for name, places in undo_log.places.items():
        queue = taking_queue(vhost.queues.get(name))
        if queue is not None:
            permit = Permit(place, queue)
            move_router = UndoRouter(
                vhost=vhost, redrive=redrive.id, queue=redrive.queue, admit=permit.admit, undo_log=undo_log
            )
            steps.append(
                JobStep(
                    MessageMove(
                        queue, vhost, SelectionScan(queue, places), fits=fits, move_router=move_router
                    ),
                    permit,
                )
            )
    return Job(
        id=id,
        kind=JobKind.UNDO,
        user=place.user.identity,
        vhost=redrive.vhost,
        queue=redrive.queue,
        target={"queue": redrive.queue},
        steps=steps,
        undoes=redrive,
    )


def check_job_limit(node: ManagedNode) -> None:
    """Raise RequestRefused if the maximum number of jobs is running."""
    if node.jobs.is_full:
        raise RequestRefused(
            error_reply(503, "service_unavailable", "too many jobs are running: wait for one, or stop one")
        )


def live_domain(node: ManagedNode, vhost: str) -> VhostServices:
    """The services of the virtual host; raises RequestRefused if it is down."""
    services = node.server.vhost_services.get(vhost)
    if services is None:
        raise RequestRefused(error_reply(503, "service_unavailable", f"vhost '{vhost}' is down"))
    return services


def _named(request: web.Request, node: ManagedNode) -> Job:
    found = node.jobs.by_id.get(request.match_info["job"])
    if found is None or not _is_visible(request, node, found):
        raise missing()
    return found


def _is_visible(request: web.Request, node: ManagedNode, job: Job) -> bool:
    user = user_of(request)
    return is_monitor(user) or job.user == user.identity or job.vhost in login_vhosts(node, user)
