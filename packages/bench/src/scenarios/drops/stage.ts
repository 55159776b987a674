import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Node, type System } from 'webmq-check/systems'
import { RunError } from '../../exit-codes.js'
import { nowUs } from '../../measure/clock.js'
import { machineCpuSeconds } from '../../measure/machine.js'
import { type Parts, startService } from '../../parts.js'
import type { RunProgress } from '../../run-progress.js'
import type { Audience } from './audience.js'

const NAMESPACE_BYTES = 6
const POLL_MS = 20
/** The status of clients comes ten times per second. */
const STATUS_MS = 250
const QUIET_MS = 1_500

/** Starts the nodes of a target. @param redisUrl Absent: there is one, which keeps everything in its memory. */
export async function startNodes(
  system: System,
  count: number,
  redisUrl: string | undefined,
  parts: Parts,
): Promise<readonly Node[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'webmq-drops-'))
  await parts.add(() => ({ stop: () => rm(folder, { recursive: true, force: true }) }))
  const namespace = `drops-${randomBytes(NAMESPACE_BYTES).toString('hex')}`
  const indexes = Array.from({ length: count }, (_, index) => index)
  const ports = await startService('nodes', ({ freePort }) => Promise.all(indexes.map(() => freePort())))
  const nodes = ports.map((port, index) => {
    const program = system.nodeProgram?.({ port, redisUrl, namespace, folder })
    if (program === undefined) throw new Error(`${system.title} starts no nodes`)
    return new Node(`node ${index + 1}`, port, program)
  })
  await Promise.all(nodes.map((node) => parts.add(() => ({ stop: () => node.kill() }))))
  await Promise.all(nodes.map((node) => started(node)))
  return nodes
}

export async function started(node: Node): Promise<void> {
  await node.start().catch((cause: unknown) => {
    throw new RunError(cause instanceof Error ? cause.message : String(cause), { cause })
  })
}

/** What a node says about its version; `undefined`: nothing. */
export async function versionOf({ port }: Node): Promise<string | undefined> {
  const response = await fetch(`http://127.0.0.1:${port}/health`)
  const { version } = (await response.json()) as { readonly version?: unknown }
  return typeof version === 'string' ? version : undefined
}

/** Resolves when nobody is away. @returns whether that was so in time */
export async function allBack(audience: Audience, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
  await sleep(STATUS_MS, undefined, { signal })
  const deadlineMs = performance.now() + timeoutMs
  while (audience.awayCount > 0) {
    if (performance.now() > deadlineMs) return false
    await sleep(POLL_MS, undefined, { signal })
  }
  return true
}

/** Resolves when nothing has come for a while. */
export async function quiet(audience: Audience, signal: AbortSignal): Promise<void> {
  for (let before = -1; audience.heardCount !== before; ) {
    before = audience.heardCount
    await sleep(QUIET_MS, undefined, { signal })
  }
}

/** Resolves when all listen. */
export async function gathered(audience: Audience, progress: RunProgress): Promise<void> {
  progress.phase('clients come')
  await progress.during(audience.ready(), { counts: () => ({ clients: audience.readyCount }) })
}

/** @throws {RunError} when a node has ended by itself. */
export function checkAlive(nodes: readonly Node[]): void {
  for (const { name, deaths } of nodes)
    if (deaths.length > 0) throw new RunError(`${name} ended by itself: ${deaths.join('; ')}`)
}

/** @returns a function that gives the share of all cores that was busy since now, whoever used them: 0 to 1 */
export function watchMachine(): () => number {
  const [startUs, startSeconds] = [nowUs(), machineCpuSeconds()]
  return () => ((machineCpuSeconds() - startSeconds) * 1_000_000) / (nowUs() - startUs) / cpus().length
}
