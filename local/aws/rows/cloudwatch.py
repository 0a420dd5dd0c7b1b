"""Alarms and dashboards."""

from typing import Any

from local.aws.table import Call, Naming, Property, Row, sync_tags, tag_list, tag_map
from local.aws.values import Props, as_list, as_object

# Input of the engine, field of the API, property.
_FIELDS: dict[str, tuple[str, Property]] = {
    "alarmDescription": ("AlarmDescription", Property()),
    "comparisonOperator": ("ComparisonOperator", Property()),
    "evaluationPeriods": ("EvaluationPeriods", Property()),
    "datapointsToAlarm": ("DatapointsToAlarm", Property()),
    "threshold": ("Threshold", Property()),
    "metricName": ("MetricName", Property()),
    "namespace": ("Namespace", Property()),
    "period": ("Period", Property()),
    "statistic": ("Statistic", Property()),
    "extendedStatistic": ("ExtendedStatistic", Property()),
    "unit": ("Unit", Property()),
    "treatMissingData": ("TreatMissingData", Property(default="missing")),
    "actionsEnabled": ("ActionsEnabled", Property(default=True)),
    "alarmActions": ("AlarmActions", Property(unordered=True)),
    "okActions": ("OKActions", Property(unordered=True)),
    "insufficientDataActions": ("InsufficientDataActions", Property(unordered=True)),
}

_OF_ONE_METRIC = frozenset({"period", "statistic", "extendedStatistic", "unit"})


def _put(call: Call, inputs: Props) -> str:
    request: Props = {
        field: inputs[name] for name, (field, _) in _FIELDS.items() if inputs.get(name) not in (None, "", [])
    }
    if dimensions := as_object(inputs.get("dimensions")):
        request["Dimensions"] = [{"Name": name, "Value": value} for name, value in dimensions.items()]
    if queries := as_list(inputs.get("metricQueries")):
        request["Metrics"] = [_query(as_object(query) or {}) for query in queries]
    call.client("cloudwatch").put_metric_alarm(AlarmName=inputs["name"], Tags=tag_list(inputs["tags"]), **request)
    return str(inputs["name"])


def _query(query: Props) -> Props:
    request: Props = {"Id": query["id"], "ReturnData": query.get("returnData", False)}
    for name in ("expression", "label", "period", "accountId"):
        if query.get(name):
            request[name[:1].upper() + name[1:]] = query[name]
    metric: Any = as_object(query.get("metric"))
    if metric:
        dimensions = as_object(metric.get("dimensions")) or {}
        request["MetricStat"] = {
            "Metric": {
                "Namespace": metric.get("namespace"),
                "MetricName": metric["metricName"],
                "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
            },
            "Period": metric["period"],
            "Stat": metric["stat"],
        }
    return request


def _observe(call: Call, name: str, _inputs: Props) -> Props | None:
    cloudwatch = call.client("cloudwatch")
    alarms = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    if not alarms:
        return None
    alarm = alarms[0]
    found: Props = {key: alarm.get(field) for key, (field, _) in _FIELDS.items()}
    if "MetricName" not in alarm:
        # The emulator fills these in for an alarm over metric queries, which has none of its own.
        found = {key: value for key, value in found.items() if key not in _OF_ONE_METRIC}
    return {
        **found,
        "name": name,
        "arn": alarm["AlarmArn"],
        "dimensions": tag_map(alarm.get("Dimensions"), key="Name") or None,
        "tags": tag_map(cloudwatch.list_tags_for_resource(ResourceARN=alarm["AlarmArn"])["Tags"]),
    }


def _update(call: Call, _name: str, old: Props, new: Props) -> None:
    cloudwatch = call.client("cloudwatch")
    _put(call, new)
    sync_tags(
        old.get("tags"),
        new.get("tags"),
        put=lambda tags: cloudwatch.tag_resource(ResourceARN=old["arn"], Tags=tag_list(tags)),
        remove=lambda keys: cloudwatch.untag_resource(ResourceARN=old["arn"], TagKeys=keys),
    )


def _delete(call: Call, name: str, _state: Props) -> None:
    call.client("cloudwatch").delete_alarms(AlarmNames=[name])


ALARM = Row(
    resource_type="aws:cloudwatch/metricAlarm:MetricAlarm",
    properties={
        "name": Property(replaces=True),
        **{name: prop for name, (_, prop) in _FIELDS.items()},
        "dimensions": Property(),
        "metricQueries": Property(write_only=True, local_gap="sent; the emulator does not keep them"),
    },
    naming=Naming(max_length=255),
    create=_put,
    observe=_observe,
    update=_update,
    delete=_delete,
    tags=True,
    local_gap="alarms are stored; those over metrics of SQS never change state, since no such metric is published",
)


def _put_dashboard(call: Call, inputs: Props) -> str:
    call.client("cloudwatch").put_dashboard(
        DashboardName=inputs["dashboardName"], DashboardBody=inputs["dashboardBody"]
    )
    return str(inputs["dashboardName"])


def _observe_dashboard(call: Call, name: str, _inputs: Props) -> Props | None:
    found = call.client("cloudwatch").get_dashboard(DashboardName=name)
    return {
        "dashboardName": name,
        "dashboardArn": found["DashboardArn"],
        "dashboardBody": found["DashboardBody"],
    }


def _update_dashboard(call: Call, _name: str, _old: Props, new: Props) -> None:
    _put_dashboard(call, new)


def _delete_dashboard(call: Call, name: str, _state: Props) -> None:
    call.client("cloudwatch").delete_dashboards(DashboardNames=[name])


DASHBOARD = Row(
    resource_type="aws:cloudwatch/dashboard:Dashboard",
    properties={
        "dashboardName": Property(replaces=True),
        "dashboardBody": Property(document=True, local_gap="stored; there is no console to show it"),
    },
    create=_put_dashboard,
    observe=_observe_dashboard,
    update=_update_dashboard,
    delete=_delete_dashboard,
)

ROWS = (ALARM, DASHBOARD)
