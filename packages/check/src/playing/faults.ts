import { setTimeout as sleep } from 'node:timers/promises'
import type { Service } from 'webmq-services'
import type { ActorOf } from '../actors/company.js'
import type { Listener } from '../actors/listener.js'
import type { Publisher } from '../actors/publisher.js'
import type { StreamViewer } from '../actors/stream-viewer.js'
import type { StreamWriter } from '../actors/stream-writer.js'
import type { FaultRecord, RunRecord, Touched } from '../judging/record.js'
import type { Link } from './link.js'
import type { Node } from './node.js'
import type { BrokerStep, Schedule, Step } from './schedule.js'
import { stoodStillMs } from './stand-still.js'

/** Links and broker programs, which steps break. A step that names a missing one does nothing. */
export interface Breakable {
  /** The programs of the broker. */
  readonly parts: readonly Service[]
  readonly clientLinks: readonly Link[]
  readonly brokerLinks: readonly Link[]
  readonly peerLinks: readonly Link[]
  /** Each rejects if it has failed. */
  readonly commands?: readonly Command[]
}

export interface Command {
  /** For people. */
  readonly title: string
  readonly touches: readonly Touched[]
  run(): Promise<void>
}

/** What steps are done to. */
export interface Cast {
  readonly breakable: Breakable
  readonly nodes: readonly Node[]
  readonly publishers: readonly ActorOf<Publisher>[]
  readonly listeners: readonly ActorOf<Listener>[]
  readonly writers: readonly ActorOf<StreamWriter>[]
  readonly viewers: readonly ActorOf<StreamViewer>[]
  readonly record: RunRecord
  readonly nowMs: () => number
}

/** Nodes have so long to close their connections when they are stopped. */
export const DRAIN_TIMEOUT_MS = 1_000
/** A node stops within its drain timeout and this, whatever does not answer. */
const STOP_GRACE_MS = 2_000

/** How often a listener leaves in the middle of a replay. */
const MOVE_COUNT = 2

/** A step that could not be done, or showed a fault of a node. */
export interface Mishap {
  readonly rule: 'stop' | 'start' | 'settle' | 'died' | 'play' | 'command'
  readonly atMs: number
  readonly owner: string
  readonly text: string
}

/** Takes all steps of a schedule at their times. Resolves when the last one is over; returns what went wrong with nodes. */
export async function takeSteps({ steps }: Schedule, cast: Cast): Promise<Mishap[]> {
  const mishaps: Mishap[] = []
  // Two steps at one thing follow each other, even when the first takes longer than planned.
  const queues = new Map<string, Promise<void>>()
  for (const step of [...steps].sort((first, second) => first.atMs - second.atMs)) {
    const target = targetOf(step)
    const previous = queues.get(target) ?? Promise.resolve()
    queues.set(
      target,
      previous.then(() => take(step, cast, mishaps)),
    )
  }
  await Promise.all(queues.values())
  return mishaps
}

function targetOf(step: Step): string {
  if ('node' in step) return `node-${step.node}`
  if ('link' in step) return `${step.what}-${step.link}`
  if ('part' in step) return `part-${step.part}`
  if ('command' in step) return 'command'
  return `${step.what}-${step.actor}`
}

async function take(step: Step, cast: Cast, mishaps: Mishap[]): Promise<void> {
  const { nowMs, record } = cast
  await sleep(Math.max(0, step.atMs - nowMs()))
  const fromMs = nowMs()
  const note = (touches: readonly Touched[], node?: number) => {
    const fault: FaultRecord = { name: nameOf(step), fromMs, untilMs: nowMs(), touches }
    record.faults.push(node === undefined ? fault : { ...fault, node: `node-${node}` })
  }
  switch (step.what) {
    case 'kill-node':
    case 'stop-node':
    case 'freeze-node':
      await takeNodeStep(step, cast, mishaps)
      return note(['node'], step.node)
    case 'broker-link':
    case 'client-link':
    case 'peer-link': {
      const links = { 'broker-link': 'brokerLinks', 'client-link': 'clientLinks', 'peer-link': 'peerLinks' } as const
      const link = cast.breakable[links[step.what]][step.link]
      if (link === undefined) return
      link.break(step)
      await sleep(step.forMs)
      link.heal()
      return note([`${step.what}s`], step.what === 'peer-link' ? undefined : step.link)
    }
    case 'kill-broker':
    case 'restart-broker':
    case 'freeze-broker':
    case 'wipe-broker': {
      const part = cast.breakable.parts[step.part]
      if (part === undefined) return
      await takeBrokerStep(step, part)
      return note(step.what === 'wipe-broker' ? ['broker', 'broker-data'] : ['broker'])
    }
    case 'run-command': {
      const command = cast.breakable.commands?.[step.command]
      if (command === undefined) return
      try {
        await command.run()
      } catch (error) {
        mishaps.push({ rule: 'command', atMs: nowMs(), owner: command.title, text: textOf(error) })
      }
      return note(command.touches)
    }
    default:
      takeActorStep(step, cast)
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

async function takeNodeStep(
  step: Extract<Step, { what: 'kill-node' | 'stop-node' | 'freeze-node' }>,
  cast: Cast,
  mishaps: Mishap[],
): Promise<void> {
  const node = cast.nodes[step.node]
  if (node === undefined) return
  if (step.what === 'freeze-node') {
    await node.freeze()
    await sleep(step.forMs)
    node.thaw()
    return
  }
  if (step.what === 'kill-node') await node.kill()
  else mishaps.push(...(await stopNode(node, cast)))
  await sleep(step.forMs)
  try {
    await node.start()
  } catch (error) {
    mishaps.push({ rule: 'start', atMs: cast.nowMs(), owner: node.name, text: String(error) })
  }
}

async function takeBrokerStep({ what, forMs }: Step & BrokerStep, part: Service): Promise<void> {
  if (what === 'freeze-broker') {
    await part.freeze()
    await sleep(forMs)
    return await part.thaw()
  }
  if (what !== 'restart-broker') {
    await part.kill()
    await sleep(forMs)
  }
  if (what !== 'wipe-broker') return await part.restart()
  if (part.wipe === undefined) throw new Error(`the data of this ${part.kind} cannot be deleted`)
  await part.wipe()
}

/** Stops a node, and says so if that took too long. */
export async function stopNode(node: Node, { nowMs, record }: Pick<Cast, 'nowMs' | 'record'>): Promise<Mishap[]> {
  const beganAtMs = nowMs()
  const { exitCode, output, ...took } = await node.stop()
  const tookMs = took.tookMs - stoodStillMs(record.faults, beganAtMs)
  const boundMs = DRAIN_TIMEOUT_MS + STOP_GRACE_MS
  const mishap = { rule: 'stop', atMs: nowMs(), owner: node.name } as const
  if (exitCode !== 0) return [{ ...mishap, text: `SIGTERM ended it with exit code ${exitCode}\n${output}` }]
  if (tookMs <= boundMs) return []
  return [{ ...mishap, text: `it took ${Math.round(tookMs)} ms from SIGTERM to its end, not ${boundMs}` }]
}

function takeActorStep(step: Extract<Step, { actor: number }>, cast: Cast): void {
  const { actor } = step
  const [listener, publisher] = [cast.listeners[actor], cast.publishers[actor]]
  const [writer, viewer] = [cast.writers[actor], cast.viewers[actor]]
  switch (step.what) {
    case 'cut-listener':
      listener?.cut()
      break
    case 'stall-listener':
      listener?.stall(step.forMs)
      break
    case 'move-listener':
      listener?.move()
      break
    case 'move-listener-during-replay':
      listener?.moveDuringReplay(MOVE_COUNT)
      listener?.cut()
      break
    case 'relisten':
      listener?.relisten()
      break
    case 'reload-listener':
      listener?.reload()
      break
    case 'cut-publisher':
      publisher?.cut()
      break
    case 'stall-publisher':
      publisher?.stall(step.forMs)
      break
    case 'cut-writer':
      writer?.cut()
      break
    case 'silence-writer':
      writer?.silence(step.forMs)
      break
    case 'cut-viewer':
      viewer?.cut()
      break
    case 'stall-viewer':
      viewer?.stall(step.forMs)
      break
    case 'stop-stream':
      viewer?.askToStop()
  }
}

/** A step in words. */
export function nameOf(step: Step): string {
  const words = step.what.replaceAll('-', ' ')
  if ('node' in step) return `${words} ${step.node}`
  if ('link' in step) return `${step.fault} ${words} ${step.link}`
  if ('command' in step) return `${words} ${step.command + 1}`
  if ('part' in step) return step.part === 0 ? words : `${words} ${step.part}`
  return `${words} ${step.actor}`
}
