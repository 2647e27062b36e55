"""Jobs over HTTP: which there are, how far each is, stopping one, and undoing a redrive."""

from aiohttp import web

from warren.management.auth import check_owner, is_monitor, login_vhosts, user_of
from warren.management.describing import OneQuery, PageQuery, described, paged
from warren.management.jobs.job import Job, Kind, Leg
from warren.management.jobs.permit import Permit, Place
from warren.management.listing import Listing, reply_list, reply_one
from warren.management.managed import Managed
from warren.management.replies import Refused, bad_request, done, missing, refused, reply
from warren.management.views.jobs import JobShape, job_view
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Peeked
from warren.queues.redriven import number_in
from warren.session.domain import Domain
from warren.vhost.looking import Chosen
from warren.vhost.moving import Moving
from warren.vhost.trail import Trail
from warren.vhost.ways import TakingBack

_STOPPED = "stopped by user '{}'"


@described(query=PageQuery, gives=paged(JobShape))
async def jobs(request: web.Request, node: Managed) -> web.StreamResponse:
    """Those of the virtual hosts that the user may look into, the newest first."""
    now = node.now()
    listing = Listing(
        records=[job for job in reversed(node.jobs.by_id.values()) if _is_visible(request, node, job)],
        view=lambda job: job_view(job, now),
        columns={
            "name": lambda job: job.queue,
            "started_at": lambda job: job.started_at,
            "vhost": lambda job: job.vhost,
        },
        is_paged=True,
        is_sorted=True,
    )
    return await reply_list(request, listing)


@described(query=OneQuery, gives=JobShape)
def job(request: web.Request, node: Managed) -> web.StreamResponse:
    """One of them."""
    return reply_one(request, job_view(_named(request, node), node.now()))


def stop_job(request: web.Request, node: Managed) -> web.StreamResponse:
    """Stop it; one that is over is forgotten."""
    found = _named(request, node)
    check_owner(request, found.user)
    if found.is_over:
        del node.jobs.by_id[found.id]
    else:
        found.stop(_STOPPED.format(user_of(request).name))
    return done()


@described(answers={201: JobShape})
def undo_job(request: web.Request, node: Managed) -> web.StreamResponse:
    """Take back what a redrive has moved, and nobody was handed since: a job, too."""
    redrive = _named(request, node)
    check_owner(request, redrive.user)
    if redrive.kind is not Kind.REDRIVE:
        raise bad_request("only a redrive can be undone: move messages back instead")
    if not redrive.is_over or (redrive.undone_by is not None and not redrive.undone_by.is_over):
        raise bad_request("the redrive, or its undo, is going on: wait, or stop it first")
    if redrive.trail is None or not redrive.trail.count:
        raise bad_request("nothing of it can be taken back any more")
    check_free(node)
    domain = live_domain(node, redrive.vhost)
    place = Place(node.server, user_of(request), domain, domain, node.now)
    undo = _undoing(redrive, redrive.trail, place, node.jobs.new_id())
    redrive.undone_by = undo
    node.jobs.start(undo)
    return reply(job_view(undo, node.now()), 201)


def _undoing(redrive: Job, trail: Trail, place: Place, id: str) -> Job:
    """The job that takes back what `trail` leads to."""

    def fits(peeked: Peeked) -> bool:
        return not peeked.attempts and number_in(peeked.message, redrive.id) is not None

    legs = []
    vhost = place.target.vhost
    for name, places in trail.places.items():
        queue = vhost.queues.get(name)
        if isinstance(queue, ClassicQueue):
            permit = Permit(place, queue)
            ways = TakingBack(
                vhost=vhost, redrive=redrive.id, queue=redrive.queue, admit=permit.admit, trail=trail
            )
            legs.append(Leg(Moving(queue, vhost, Chosen(queue, places), fits=fits, ways=ways), permit))
    return Job(
        id=id,
        kind=Kind.UNDO,
        user=place.user.name,
        vhost=redrive.vhost,
        queue=redrive.queue,
        target={"queue": redrive.queue},
        legs=legs,
        undoes=redrive,
    )


def check_free(node: Managed) -> None:
    """Refuse what would be one job too many."""
    if node.jobs.is_full:
        raise Refused(refused(503, "service_unavailable", "too many jobs are running: wait, or stop one"))


def live_domain(node: Managed, vhost: str) -> Domain:
    """The virtual host, which must be alive."""
    domain = node.server.domains.get(vhost)
    if domain is None:
        raise Refused(refused(503, "service_unavailable", f"vhost '{vhost}' is down"))
    return domain


def _named(request: web.Request, node: Managed) -> Job:
    found = node.jobs.by_id.get(request.match_info["job"])
    if found is None or not _is_visible(request, node, found):
        raise missing()
    return found


def _is_visible(request: web.Request, node: Managed, job: Job) -> bool:
    user = user_of(request)
    return is_monitor(user) or job.user == user.name or job.vhost in login_vhosts(node, user)
