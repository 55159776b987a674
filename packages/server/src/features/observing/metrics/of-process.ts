import type { HeapSpaceInfo } from 'node:v8'
import type { ProcessStats } from '../measuring/process-watch.js'
import { type MetricSpec, metricsFrom, seriesName } from './spec.js'

/**
 * Metrics of the process, with the names, help texts and labels of the package prom-client, which boards and alerts know; but
 * for its handles and requests, which Node tells nobody.
 */
export const PROCESS_METRICS: readonly MetricSpec<ProcessStats>[] = [
  ...metricsFrom((stats: ProcessStats) => stats, {
    process_cpu_user_seconds_total: 'userCpuSeconds: Total user CPU time spent in seconds.',
    process_cpu_system_seconds_total: 'systemCpuSeconds: Total system CPU time spent in seconds.',
    process_cpu_seconds_total: [
      'Total user and system CPU time spent in seconds.',
      ({ userCpuSeconds, systemCpuSeconds }) => userCpuSeconds + systemCpuSeconds,
    ],
    process_start_time_seconds: 'startedSeconds: Start time of the process since unix epoch in seconds.',
    process_resident_memory_bytes: 'residentBytes: Resident memory size in bytes.',
    process_virtual_memory_bytes: 'virtualBytes: Virtual memory size in bytes.',
    process_heap_bytes: 'dataBytes: Process heap size in bytes.',
    process_open_fds: 'descriptorCount: Number of open file descriptors.',
    process_max_fds: 'descriptorLimit: Maximum number of open file descriptors.',
    nodejs_eventloop_lag_seconds: 'readingLagSeconds: Lag of event loop in seconds.',
    nodejs_eventloop_lag_min_seconds: ['The minimum recorded event loop delay.', ({ lag }) => lag.min],
    nodejs_eventloop_lag_max_seconds: ['The maximum recorded event loop delay.', ({ lag }) => lag.max],
    nodejs_eventloop_lag_mean_seconds: ['The mean of the recorded event loop delays.', ({ lag }) => lag.mean],
    nodejs_eventloop_lag_stddev_seconds: [
      'The standard deviation of the recorded event loop delays.',
      ({ lag }) => lag.stddev,
    ],
    nodejs_eventloop_lag_p50_seconds: ['The 50th percentile of the recorded event loop delays.', ({ lag }) => lag.p50],
    nodejs_eventloop_lag_p90_seconds: ['The 90th percentile of the recorded event loop delays.', ({ lag }) => lag.p90],
    nodejs_eventloop_lag_p99_seconds: ['The 99th percentile of the recorded event loop delays.', ({ lag }) => lag.p99],
    nodejs_heap_size_total_bytes: ['Process heap size from Node.js in bytes.', ({ memory }) => memory.heapTotal],
    nodejs_heap_size_used_bytes: ['Process heap size used from Node.js in bytes.', ({ memory }) => memory.heapUsed],
    nodejs_external_memory_bytes: ['Node.js external memory size in bytes.', ({ memory }) => memory.external],
    'nodejs_heap_space_size_total_bytes{space}': [
      'Process heap space size total from Node.js in bytes.',
      ({ heapSpaces }) => bySpace(heapSpaces, 'space_size'),
    ],
    'nodejs_heap_space_size_used_bytes{space}': [
      'Process heap space size used from Node.js in bytes.',
      ({ heapSpaces }) => bySpace(heapSpaces, 'space_used_size'),
    ],
    'nodejs_heap_space_size_available_bytes{space}': [
      'Process heap space size available from Node.js in bytes.',
      ({ heapSpaces }) => bySpace(heapSpaces, 'space_available_size'),
    ],
  }),
  ...metricsFrom(
    (stats: ProcessStats) => stats,
    {
      'nodejs_active_resources{type}': [
        'Number of active resources that are currently keeping the event loop alive, grouped by async resource type.',
        ({ resources }) => resources.byType,
      ],
      nodejs_active_resources_total: ['Total number of active resources.', ({ resources }) => resources.count],
    },
    // In spite of their names.
    'gauge',
  ),
  {
    name: 'nodejs_version_info',
    type: 'gauge',
    help: 'Node.js version info.',
    labels: ['version', 'major', 'minor', 'patch'],
    read: () => [{ series: versionSeries(process.version), value: 1 }],
  },
  ...metricsFrom(
    (stats: ProcessStats) => stats,
    {
      'nodejs_gc_duration_seconds{kind}':
        'gc: Garbage collection duration by kind, one of major, minor, incremental or weakcb.',
    },
    'histogram',
  ),
]

type SpaceSize = 'space_size' | 'space_used_size' | 'space_available_size'

function bySpace(spaces: readonly HeapSpaceInfo[], size: SpaceSize): Record<string, number> {
  return Object.fromEntries(spaces.map((space) => [space.space_name.replace('_space', ''), space[size]]))
}

function versionSeries(version: string): string {
  const [major = '', minor = '', patch = ''] = version.slice(1).split('.').map(Number).map(String)
  return seriesName('nodejs_version_info', { version, major, minor, patch })
}
