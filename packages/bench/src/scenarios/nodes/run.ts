import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { RunError } from '../../exit-codes.js'
import { Loadgen } from '../../loadgen/loadgen.js'
import { nowUs } from '../../measure/clock.js'
import { processUsage } from '../../measure/process-usage.js'
import { type Parts, withParts } from '../../parts.js'
import type { RunProgress } from '../../run-progress.js'
import type { TargetSettings } from '../../targets/messages.js'
import { TargetProcess } from '../../targets/target-process.js'
import { parseTarget, webmq } from '../../targets/target-table.js'
import { type CountedBroker, type NodesBroker, startCountedBroker } from './brokers.js'
import type { NodesConfig } from './options.js'
import { costOf, mark, mean, restOf, usageBetween } from './usage.js'

/** Nodes that start at a time: each takes a core for half a second. */
const STARTING = 4
/** After it nodes know each other, and listens and members are everywhere. */
const SETTLE_MS = 2_000
/** Those who ask within this time share one round. */
const QUESTION_INTERVAL_MS = 600
const LOGGED_KEY = 'log.tick'
const PAYLOAD_BYTES = 100
const KEY_BYTES = 24
const MESSAGE_TIMEOUT_MS = 30_000
const FIRST_MEMBER_ID = 1_000

export type NodesFigures = Readonly<Record<string, number | null>>

/** Measures a fleet of one size on one broker; when it settles, no process of it is left. */
export async function measureNodes(
  kind: NodesBroker,
  nodeCount: number,
  config: NodesConfig,
  {
    program,
    progress,
    signal,
  }: { readonly program: string; readonly progress: RunProgress; readonly signal: AbortSignal },
): Promise<NodesFigures> {
  return await withParts(signal, async (parts) => {
    const pause = async (ms: number) => await sleep(ms, undefined, { signal })
    progress.phase(`starting ${kind}`)
    const broker = await startCountedBroker(kind, nodeCount, parts)
    const apiKey = randomBytes(KEY_BYTES).toString('base64url')
    const nodes: TargetProcess[] = []
    const start = async (count: number) => {
      while (nodes.length < count) {
        const some = Array.from({ length: Math.min(STARTING, count - nodes.length) }, (_, place) =>
          startNode(nodes.length + place, broker, apiKey, parts),
        )
        nodes.push(...(await Promise.all(some)))
        progress.update(nodes.length / nodeCount, `${nodes.length} of ${nodeCount} nodes`)
      }
      await pause(SETTLE_MS)
    }
    const during = async (phase: string, work: () => Promise<unknown>) => {
      progress.phase(phase)
      const before = await mark('start', nodes, broker)
      await work()
      return usageBetween(before, await mark('end', nodes, broker))
    }
    await start(nodeCount - 1)
    const [alone, beganUs] = [await broker.look(), nowUs()]
    await start(nodeCount)
    const [joined, joinedUs] = [await broker.look(), nowUs()]

    const rest = restOf(await during('resting', () => pause(config.duration * 1_000)))
    const loadgen = await parts.add(() => new Loadgen({ program, threads: 1 }))
    await loadgen.ready()
    const groups = nodes.map(({ port }) => ({ count: 1, port }))
    const connected = await loadgen.connect({ ...webmq.connect, count: nodeCount, groups })
    if (connected.failed > 0) throw new RunError(`${connected.failed} of ${nodeCount} connections failed`)
    const say = async (texts: readonly string[], id: number) => {
      const { failed } = await loadgen.send(texts, `ok ${id}`, MESSAGE_TIMEOUT_MS)
      if (failed > 0) throw new RunError(`${failed} nodes gave no answer to '${texts[0]}'`)
    }
    const patterns = Array.from({ length: config.patterns }, (_, index) => `listen ${index + 1} n$GROUP.p${index}.*`)
    const listened = await during('patterns', async () => {
      await say(patterns, config.patterns)
      await pause(SETTLE_MS)
    })
    const held = await broker.look()
    const publisher = nodes[0]
    const logged = await during('logged messages', async () => {
      const load = { perSecond: config.rate, durationMs: config.duration * 1_000, payloadBytes: PAYLOAD_BYTES }
      await publisher?.publishPaced({ ...load, isThrottled: false, key: LOGGED_KEY })
      await pause(SETTLE_MS)
    })
    const enter = async (id: number) => await say([`presence ${id} room$GROUP.${id} op=enter member=m`], id)
    // With the first member a node begins to share them.
    await enter(FIRST_MEMBER_ID)
    await pause(SETTLE_MS)
    const entered = await during('members', async () => {
      for (let member = 1; member <= config.members; member++) await enter(FIRST_MEMBER_ID + member)
      await pause(SETTLE_MS)
    })
    const asked = await during('questions', async () => {
      for (let question = 0; question < config.questions; question++) {
        await ask(publisher?.port ?? 0, apiKey, nodeCount)
        await pause(QUESTION_INTERVAL_MS)
      }
    })

    const pattern = costOf(listened, rest, config.patterns)
    const message = costOf(logged, rest, config.rate * config.duration)
    const member = costOf(entered, rest, config.members * nodeCount)
    const question = costOf(asked, rest, config.questions)
    return {
      restNodeMs: rest.nodeCpuUs / 1_000,
      restBrokerMs: ratio(rest.brokerCpuUs, 1_000 * nodeCount),
      restBytes: ratio(rest.sentBytes, nodeCount),
      joinBytes: joinBytesOf(beyond(joined.sentBytes, alone.sentBytes), rest.sentBytes, joinedUs - beganUs),
      patternNodeUs: mean(pattern.nodesUs),
      patternBrokerUs: ratio(pattern.brokerUs, nodeCount),
      patternObjects: ratio(beyond(held.objects, joined.objects), config.patterns * nodeCount),
      loggedPublisherUs: message.nodesUs[0] ?? null,
      loggedNodeUs: mean(message.nodesUs.slice(1)),
      loggedBrokerUs: message.brokerUs,
      loggedBytes: message.bytes,
      memberNodeUs: mean(member.nodesUs),
      memberBrokerUs: member.brokerUs,
      memberBytes: member.bytes,
      questionNodesUs: question.nodesUs.reduce((sum, one) => sum + one, 0),
      questionBrokerUs: question.brokerUs,
      questionBytes: question.bytes,
      brokerConnections: joined.connections,
      brokerObjects: joined.objects,
      nodeRssBytes: mean(nodes.map(({ pid }) => processUsage(pid).rssBytes)),
    }
  })
}

async function startNode(index: number, broker: CountedBroker, apiKey: string, parts: Parts): Promise<TargetProcess> {
  const options = { history: ['log.#=1000'], apiKeys: [apiKey], ...broker.nodeOptions(index) }
  const settings: TargetSettings = { ...options, isUnwatched: true }
  const choice = { ...parseTarget('webmq-native'), title: `node ${index + 1}` }
  const node = await parts.add(() => new TargetProcess(choice, settings, ''))
  await node.ready()
  return node
}

/** @throws {RunError} unless all nodes answer. */
async function ask(port: number, apiKey: string, nodeCount: number): Promise<void> {
  const headers = { authorization: `Bearer ${apiKey}` }
  const response = await fetch(`http://127.0.0.1:${port}/api/info`, { headers })
  const { nodes = [] } = (await response.json()) as { readonly nodes?: readonly unknown[] }
  if (nodes.length !== nodeCount) throw new RunError(`${nodes.length} of ${nodeCount} nodes have answered an operator`)
}

/** Without what is sent at rest in that time. */
function joinBytesOf(bytes: number | null, restBytesPerSecond: number | null, us: number): number | null {
  if (bytes === null || restBytesPerSecond === null) return null
  return Math.max(0, bytes - (restBytesPerSecond * us) / 1_000_000)
}

function beyond(after: number | null, before: number | null): number | null {
  return after === null || before === null ? null : after - before
}

function ratio(value: number | null, count: number): number | null {
  return value === null ? null : value / count
}
