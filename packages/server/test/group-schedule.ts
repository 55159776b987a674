import { createHash } from 'node:crypto'
import type { GroupName } from '../src/features/queue-groups/group-message.js'
import { groupIdOf } from '../src/features/queue-groups/group-message.js'
import type { Broker } from '../src/kernel/ports/broker.js'
import { GroupNode, type GroupNodeOptions, type Taken } from './group-nodes.js'

/** What {@link runGroupSchedule} works with. */
export interface GroupScheduleOptions extends GroupNodeOptions {
  readonly createBroker: () => Broker | Promise<Broker>
  readonly random: () => number
  readonly publishCount: number
  /** Whether nodes may end without a word. */
  readonly crashes: boolean
}

const GROUPS: readonly GroupName[] = [
  { kind: 'listen', group: 'a', pattern: 'jobs.*' },
  { kind: 'listen', group: 'b', pattern: 'jobs.*' },
  { kind: 'listen', group: 'a', pattern: 'jobs.#' },
]

/**
 * Members join, leave and move while messages are published, nodes stop and crash, and publishers repeat what was not
 * acknowledged at another node. One node has a member of each group all the time.
 * @returns Violations: an acknowledged message that a group got not once. It may have got twice what a member of a node got
 *   that crashed, and what the publisher had to repeat while members came and went.
 */
export async function runGroupSchedule(options: GroupScheduleOptions): Promise<readonly string[]> {
  const { createBroker, random, publishCount, crashes } = options
  const taken: Taken[] = []
  const crashed = new Set<string>()
  let nodeCount = 0
  const start = async () => await new GroupNode(`node${++nodeCount}`, await createBroker(), options).start()
  const stable = await start()
  for (const name of GROUPS) await stable.record(name, taken)
  const nodes = [await start(), await start()]
  for (const [index, name] of GROUPS.entries()) await nodes[index % nodes.length]?.record(name, taken)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const acknowledged: string[] = []
  const repeated = new Set<string>()

  const publish = async (text: string) => {
    const messageId = createHash('md5').update(text).digest('base64url')
    for (let tries = 0; tries < 50; tries++) {
      const node = pick([stable, ...nodes.filter(({ isOver }) => !isOver)])
      try {
        await node.publish(`jobs.${text.length % 3}`, text, { messageId })
        acknowledged.push(text)
        return
      } catch {
        repeated.add(text)
        // Its node is gone, as for a client whose connection is lost.
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
  }

  const disturb = async () => {
    const node = pick(nodes)
    const chance = random()
    if (chance < 0.5) await node.record(pick(GROUPS), taken)
    else if (chance < 0.8) {
      const [member] = node.members.keys()
      if (member !== undefined) node.leave(member)
    } else {
      const isCrash = crashes && chance < 0.9
      if (isCrash) crashed.add(node.name)
      await (isCrash ? node.crash() : node.stop())
      nodes[nodes.indexOf(node)] = await start()
    }
  }

  const publishing: Promise<void>[] = []
  for (let count = 0; count < publishCount; count++) {
    publishing.push(publish(`${count} ${'x'.repeat(count % 5)}`))
    if (random() < 0.3) await disturb().catch(() => undefined)
    else if (count % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(publishing)
  const found = () => judge(acknowledged, taken, { crashed, repeated })
  let violations = found()
  // A member has accepted the last ones, and is called in a later turn.
  for (let turn = 0; turn < MAX_LATE_TURNS && violations.some((text) => text.endsWith(': nobody')); turn++) {
    await new Promise((resolve) => setImmediate(resolve))
    violations = found()
  }
  await Promise.all([stable, ...nodes].map((node) => node.stop()))
  return acknowledged.length === publishCount ? violations : [...violations, `${acknowledged.length} acknowledged`]
}

const MAX_LATE_TURNS = 1_000

interface Excuses {
  /** Names of nodes. */
  readonly crashed: ReadonlySet<string>
  /** Texts of messages. */
  readonly repeated: ReadonlySet<string>
}

function judge(acknowledged: readonly string[], taken: readonly Taken[], { crashed, repeated }: Excuses): string[] {
  const nodesOf = new Map<string, string[]>()
  for (const { group, text, node } of taken) {
    const id = `${group}: ${text}`
    nodesOf.set(id, [...(nodesOf.get(id) ?? []), node])
  }
  const violations: string[] = []
  for (const text of acknowledged) {
    for (const name of GROUPS) {
      const id = `${groupIdOf(name)}: ${text}`
      const nodes = nodesOf.get(id) ?? []
      const alive = nodes.filter((node) => !crashed.has(node))
      if (nodes.length === 0) violations.push(`${id}: nobody`)
      if (alive.length > 1 && !repeated.has(text)) violations.push(`${id}: ${nodes.join(' and ')}`)
    }
  }
  return violations
}
