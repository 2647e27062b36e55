"""Plans of imports, as they are shown."""

from typing import cast

from warren.management.managed_node import ManagedNode
from warren.management.views.planning import plan_item_view
from warren.metadata.definition_entries import DefinitionKey
from warren.metadata.import_plan import PlanAction, PlanItem


def test_a_plan_shows_no_passwords_of_parameters() -> None:
    item = PlanItem(
        action=PlanAction.CHANGE,
        key=DefinitionKey("parameters", "v", "n", ("federation-upstream",)),
        before={"value": {"uri": "amqp://u:old@h"}},
        after={"value": {"uri": "amqp://u:new@h"}},
    )
    shown = plan_item_view(cast("ManagedNode", None), item)
    assert (shown["before"], shown["after"]) == (
        {"value": {"uri": "amqp://u:***@h"}},
        {"value": {"uri": "amqp://u:***@h"}},
    )
