import type { ResultRecord } from '../results/result.js'
import { formatCount } from './format.js'

export interface Fact {
  readonly key: string
  readonly label: string
  readonly value: string
}

/** Everything beside the flags that a figure depends on; the same in every kind of file. */
export function environmentFacts({ command, machine, versions }: ResultRecord): Fact[] {
  const commit =
    machine.gitCommit === null ? null : `${machine.gitCommit}${machine.isGitDirty === true ? ' with changes' : ''}`
  const facts: [key: string, label: string, value: string | number | null][] = [
    ['command', 'Command', command],
    ['startedAt', 'Started', machine.startedAt],
    ['commit', 'Commit', commit],
    ['cpuModel', 'Processor', machine.cpuModel],
    ['cores', 'Cores', machine.cores],
    ['memoryGiB', 'Memory (GiB)', Math.round(machine.memoryBytes / 2 ** 30)],
    ['kernel', 'Kernel', machine.kernel],
    ['congestionControl', 'Congestion control', machine.congestionControl],
    ['cpuGovernor', 'CPU governor', machine.cpuGovernor],
    ['openFilesLimit', 'Open files, at most', machine.openFilesLimit],
    ['loadAverage', 'Load before the run', machine.loadAverage],
    ['nodeVersion', 'Node', machine.nodeVersion],
    ...Object.entries(versions).map(([target, version]): [string, string, string] => [
      `version.${target}`,
      target,
      version,
    ]),
  ]
  return facts.map(([key, label, value]) => ({ key, label, value: value === null ? 'unknown' : String(value) }))
}

export function machineLine({ machine }: ResultRecord): string {
  const parts = [
    machine.cpuModel,
    `${formatCount(machine.cores)} cores`,
    `${Math.round(machine.memoryBytes / 2 ** 30)} GiB`,
    machine.kernel,
    `Node ${machine.nodeVersion}`,
    ...(machine.congestionControl === null ? [] : [machine.congestionControl]),
  ]
  return parts.join(', ')
}
