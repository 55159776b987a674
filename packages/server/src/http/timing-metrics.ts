import { HOOK_NAMES } from '../observing/measuring/measurements.js'
import { histogram, type MetricSpec } from './metric-spec.js'

/** How long things take. */
export const TIMING_METRICS: readonly MetricSpec[] = [
  histogram(
    'webmq_publish_duration_seconds',
    'From the receipt of a publish until the broker accepted it; above 10,000 per second one of 256 stands for all.',
    ({ timings }) => timings.publish,
  ),
  histogram(
    'webmq_broker_publish_duration_seconds',
    'The part of it that the broker took: its round trip.',
    ({ timings }) => timings.broker,
  ),
  histogram(
    'webmq_delivery_lag_seconds',
    'From a publish on this node until it was passed to the listeners of this node; one message at a time is followed.',
    ({ timings }) => timings.lag,
  ),
  histogram(
    'webmq_hook_duration_seconds',
    'Time that hooks took, by hook; a webhook takes the time of its request.',
    ({ timings }) => timings.hooks,
    'hook',
    HOOK_NAMES,
  ),
]
