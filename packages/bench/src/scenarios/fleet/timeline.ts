import type { ResultTimeline, TimelinePanel } from '../../results/result.js'
import { type UsageMember, usedAt } from './cpu-usage.js'
import type { FleetObservation } from './observation.js'
import { percentiles } from './window-figures.js'

const BIN_US = 500_000

/** The run over time, in steps of half a second, with its faults. */
export function fleetTimeline(title: string, observation: FleetObservation): ResultTimeline {
  const { startUs, endUs, windows, log } = observation
  const ends = Array.from({ length: Math.floor((endUs - startUs) / BIN_US) }, (_, bin) => startUs + (bin + 1) * BIN_US)
  const perSecond = (times: readonly number[]) =>
    binned(times, startUs, ends.length).map((count) => (count * 1_000_000) / BIN_US)
  const line = (name: string, values: readonly (number | null)[]) => ({ name, values })
  const latencies: number[][] = ends.map(() => [])
  for (const { atUs, latencyUs } of log.deliveries) latencies[binOf(atUs, startUs)]?.push(latencyUs / 1_000)
  const cores = (member: UsageMember) => coresUsed(observation, member, ends)
  const panels: TimelinePanel[] = [
    { title: 'Connections', unit: '', format: 'count', lines: connectionLines(observation, ends) },
    {
      title: 'Deliveries per second',
      unit: '1/s',
      format: 'rate',
      lines: [line('deliveries', perSecond(log.deliveries.map(({ atUs }) => atUs)))],
    },
    {
      title: 'Connections opened per second',
      unit: '1/s',
      format: 'rate',
      lines: [line('opened', perSecond(log.connections.map(({ openedUs }) => openedUs)))],
    },
    {
      title: 'Gaps told',
      unit: '',
      format: 'count',
      lines: [
        line(
          'gaps',
          binned(
            log.gaps.map(({ atUs }) => atUs),
            startUs,
            ends.length,
          ),
        ),
      ],
    },
    {
      title: 'Latency p99',
      unit: 'ms',
      format: 'ms',
      lines: [
        line(
          'p99',
          latencies.map((values) => percentiles(values).p99),
        ),
      ],
    },
    {
      title: 'CPU cores',
      unit: '',
      format: 'number',
      lines: [line('nodes', cores('nodes')), line('broker', cores('broker')), line('balancer', cores('balancer'))],
    },
  ]
  return {
    title,
    stepMs: BIN_US / 1_000,
    bands: windows
      .filter(({ breaks }) => breaks !== null)
      .map((window) => ({
        label: window.fault,
        fromMs: (window.startUs - startUs) / 1_000,
        toMs: (window.repairedUs - startUs) / 1_000,
      })),
    panels,
  }
}

/** Clients per node at the end of each step, as they see it: a node that stands still keeps its clients for a while. */
function connectionLines({ nodeNames, log }: FleetObservation, ends: readonly number[]) {
  return nodeNames.map((names, index) => {
    const own = log.connections.filter(({ node }) => names.includes(node))
    const isOpenAt = (atUs: number) => (one: (typeof own)[number]) =>
      one.openedUs <= atUs && (one.endedUs === null || one.endedUs > atUs)
    return { name: `node ${index + 1}`, values: ends.map((atUs) => own.filter(isOpenAt(atUs)).length) }
  })
}

function coresUsed({ usage, startUs }: FleetObservation, member: UsageMember, ends: readonly number[]) {
  let before = usedAt(usage, member, startUs)
  return ends.map((atUs) => {
    const now = usedAt(usage, member, atUs)
    const cores = now === null || before === null ? null : (now - before) / (BIN_US / 1_000_000)
    before = now
    return cores
  })
}

function binned(times: readonly number[], startUs: number, count: number): number[] {
  const bins = Array.from({ length: count }, () => 0)
  for (const atUs of times) {
    const bin = binOf(atUs, startUs)
    if (bin < count) bins[bin] = (bins[bin] ?? 0) + 1
  }
  return bins
}

function binOf(atUs: number, startUs: number): number {
  return Math.floor((atUs - startUs) / BIN_US)
}
