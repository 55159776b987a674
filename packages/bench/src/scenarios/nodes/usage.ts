import { nowUs } from '../../measure/clock.js'
import type { TargetProcess } from '../../targets/target-process.js'
import type { BrokerLook, CountedBroker } from './brokers.js'

/** What nodes and broker have used up to one moment. */
export interface FleetMark {
  readonly atUs: number
  /** Of each node, in their order. */
  readonly nodeCpuUs: readonly number[]
  readonly brokerCpuUs: number | null
  readonly look: BrokerLook
}

/** What they have used in some time. */
export interface FleetUsage {
  readonly seconds: number
  readonly nodeCpuUs: readonly number[]
  readonly brokerCpuUs: number | null
  readonly sentBytes: number | null
}

/** What they use at rest, per second. */
export interface RestUsage {
  /** Of one node; the mean. */
  readonly nodeCpuUs: number
  readonly brokerCpuUs: number | null
  readonly sentBytes: number | null
}

/** The look at the broker is not part of the usage between two marks. */
export async function mark(
  when: 'start' | 'end',
  nodes: readonly TargetProcess[],
  broker: CountedBroker,
): Promise<FleetMark> {
  const before = when === 'start' ? await broker.look() : undefined
  const samples = await Promise.all(nodes.map((node) => node.sample()))
  const seconds = broker.cpuSeconds()
  const atUs = nowUs()
  return {
    atUs,
    nodeCpuUs: samples.map(({ cpuUserUs, cpuSystemUs }) => cpuUserUs + cpuSystemUs),
    brokerCpuUs: seconds === null ? null : seconds * 1_000_000,
    look: before ?? (await broker.look()),
  }
}

export function usageBetween(start: FleetMark, end: FleetMark): FleetUsage {
  return {
    seconds: (end.atUs - start.atUs) / 1_000_000,
    nodeCpuUs: end.nodeCpuUs.map((cpuUs, index) => cpuUs - (start.nodeCpuUs[index] ?? 0)),
    brokerCpuUs: less(end.brokerCpuUs, start.brokerCpuUs),
    sentBytes: less(end.look.sentBytes, start.look.sentBytes),
  }
}

export function restOf({ seconds, nodeCpuUs, brokerCpuUs, sentBytes }: FleetUsage): RestUsage {
  return {
    nodeCpuUs: mean(nodeCpuUs) / seconds,
    brokerCpuUs: brokerCpuUs === null ? null : brokerCpuUs / seconds,
    sentBytes: sentBytes === null ? null : sentBytes / seconds,
  }
}

/** What one of `count` actions costs beyond rest: each node in the mean, the broker, and the bytes that it sends. */
export function costOf(
  { seconds, nodeCpuUs, brokerCpuUs, sentBytes }: FleetUsage,
  rest: RestUsage,
  count: number,
): { readonly nodesUs: readonly number[]; readonly brokerUs: number | null; readonly bytes: number | null } {
  const beyond = (used: number | null, perSecond: number | null) =>
    used === null || perSecond === null ? null : Math.max(0, used - perSecond * seconds) / count
  return {
    nodesUs: nodeCpuUs.map((cpuUs) => beyond(cpuUs, rest.nodeCpuUs) ?? 0),
    brokerUs: beyond(brokerCpuUs, rest.brokerCpuUs),
    bytes: beyond(sentBytes, rest.sentBytes),
  }
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
}

function less(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a - b
}
