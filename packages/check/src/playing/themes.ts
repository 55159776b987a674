import type { Logged, PublisherPlan, ServerPlan, Step } from './schedule.js'
import type { SeededRandom } from './seeded-random.js'
import {
  drawAbsence,
  drawActorSteps,
  drawBehind,
  drawBrokerStep,
  drawLinkFault,
  drawLinkStep,
  drawNodeStep,
  drawPair,
  drawSpan,
  drawStreamSteps,
  drawTogetherSteps,
  type Scene,
} from './steps.js'

/** What is left to chance by `draw` is not left to it where a theme says otherwise. */
export interface Wishes {
  readonly logged?: Logged
  readonly server?: Partial<ServerPlan>
  readonly publisher?: Partial<PublisherPlan>
  /** Listens of each listener. */
  readonly listenCount?: readonly [min: number, max: number]
  readonly streamCount?: number
  /** Members of the queue group, all on one node. */
  readonly members?: { readonly count: number; readonly node: number }
}

/** What a schedule is about: its faults, and what the workload must have so that they mean something. */
export interface Theme {
  readonly name: string
  /** What the broker must have. Default: nothing. */
  readonly needs?: 'broker' | 'nodes' | 'log' | 'broker-log'
  /** Whether clients do it all by themselves, with the options that any server has. */
  readonly isOfClients?: boolean
  readonly wishes?: (random: SeededRandom) => Wishes
  readonly steps: (scene: Scene) => Step[]
}

/** A message of the largest payload fits into the outbox, with room for few more. */
const SMALL_OUTBOX = { maxPayloadBytes: 8_192, maxOutboxBytes: 32_768 }
const LARGE_PAYLOADS = { payloadBytes: [60, 3_000] } as const

/** The node of members that are on one. */
const TOGETHER = 0

const each = (count: number, make: (index: number) => readonly Step[]): Step[] =>
  Array.from({ length: count }, (_, index) => make(index)).flat()

/** Two different nodes. */
function drawTwo({ random, nodeCount }: Scene): [number, number] {
  const [first = 0, second = 0] = random.sample([...Array(nodeCount).keys()], 2)
  return [first, second]
}

/** All listeners leave for another node during a span. */
function moveAll({ random, listenerCount }: Scene, { atMs, forMs }: { atMs: number; forMs: number }): Step[] {
  return each(listenerCount, (actor) => [
    { atMs: atMs + random.integer(0, forMs), forMs: 0, what: 'move-listener', actor },
  ])
}

export const THEMES: readonly Theme[] = [
  {
    name: 'clients cut, stall and move',
    isOfClients: true,
    steps: (scene) => drawActorSteps(scene, scene.random.integer(5, 9)),
  },
  {
    name: 'a node is killed while another one is behind',
    needs: 'nodes',
    steps: (scene) => {
      const [behind, killed] = drawTwo(scene)
      const [outer, inner] = drawPair(scene)
      return [drawBehind(scene, outer, behind), { ...inner, what: 'kill-node', node: killed }, ...moveAll(scene, outer)]
    },
  },
  {
    name: 'the broker is restarted while a node is frozen',
    needs: 'broker',
    steps: (scene) => {
      const { random, nodeCount, partCount } = scene
      const [outer, inner] = drawPair(scene)
      const what = random.pick(['kill-broker', 'restart-broker'] as const)
      return [
        { ...outer, what: 'freeze-node', node: random.integer(0, nodeCount - 1) },
        { ...inner, what, part: random.integer(0, partCount - 1) },
        ...moveAll(scene, inner),
      ]
    },
  },
  {
    name: 'listeners move twice during a replay',
    needs: 'log',
    isOfClients: true,
    wishes: () => ({ logged: 'all', publisher: LARGE_PAYLOADS }),
    steps: (scene) => each(scene.listenerCount, (actor) => drawAbsence(scene, 'move-listener-during-replay', actor)),
  },
  {
    name: 'ids are published again, over a restart, on nodes that have never seen them',
    needs: 'log',
    wishes: (random) => ({
      logged: random.pick(['all', 'half']),
      server: { historyMaxMessages: random.integer(50, 300) },
      // The faults last up to six seconds.
      publisher: { againShare: 0.3, twinShare: 0.1, againAfterMs: [500, random.pick([1_000, 4_000, 8_000])] },
    }),
    steps: (scene) => {
      const { random, nodeCount, partCount, publisherCount } = scene
      const [outer, inner] = drawPair(scene)
      const broker: Step[] =
        partCount === 0 ? [] : [{ ...inner, what: random.pick(['kill-broker', 'restart-broker']), part: 0 }]
      return [
        ...broker,
        { ...outer, what: 'kill-node', node: random.integer(0, nodeCount - 1) },
        ...each(publisherCount, (actor) => [{ ...drawSpan(scene), what: 'cut-publisher', actor }]),
      ]
    },
  },
  {
    name: 'logged and unlogged publishes in one turn',
    wishes: (random) => ({ logged: 'half', publisher: { burstCount: random.integer(8, 20), everyMs: 400 } }),
    steps: (scene) => [...drawActorSteps(scene, 4), drawLinkStep(scene)],
  },
  {
    name: 'many listens are resumed together',
    isOfClients: true,
    wishes: () => ({ listenCount: [6, 10] }),
    steps: (scene) => each(scene.listenerCount, (actor) => drawAbsence(scene, 'cut-listener', actor)),
  },
  {
    name: 'small outboxes, and readers that stall',
    wishes: () => ({ server: SMALL_OUTBOX, publisher: LARGE_PAYLOADS, listenCount: [2, 6] }),
    steps: (scene) => [
      ...each(scene.listenerCount, (actor) => [{ ...drawSpan(scene), what: 'stall-listener', actor }]),
      ...drawActorSteps(scene, 3),
    ],
  },
  {
    name: 'a small log',
    needs: 'log',
    wishes: (random) => ({
      logged: random.pick(['all', 'half']),
      server: { historyMaxMessages: random.integer(20, 200) },
    }),
    steps: (scene) => [
      ...each(scene.listenerCount, (actor) => drawAbsence(scene, 'move-listener', actor)),
      ...drawActorSteps(scene, 3),
    ],
  },
  {
    name: 'nodes drain and stop, while clients or the broker do not answer',
    steps: (scene) => {
      const { random, nodeCount, partCount } = scene
      const [outer, inner] = drawPair(scene)
      const node = random.integer(0, nodeCount - 1)
      const silence: Step =
        partCount > 0 && random.chance(0.5)
          ? { ...outer, what: 'freeze-broker', part: random.integer(0, partCount - 1) }
          : { ...outer, what: 'client-link', link: node, fault: 'stall', streams: ['upstream', 'downstream'] }
      return [silence, { ...inner, what: 'stop-node', node }, ...drawActorSteps(scene, 2)]
    },
  },
  { name: 'nodes are killed, stopped and frozen', steps: (scene) => [drawNodeStep(scene), drawNodeStep(scene)] },
  { name: 'links break', steps: (scene) => each(scene.random.integer(2, 4), () => [drawLinkStep(scene)]) },
  {
    name: 'the broker breaks',
    needs: 'broker',
    steps: (scene) => [drawBrokerStep(scene), drawBrokerStep(scene), ...drawActorSteps(scene, 2)],
  },
  {
    name: 'the broker loses its data',
    needs: 'broker-log',
    wishes: (random) => ({ logged: random.pick(['all', 'half']) }),
    steps: (scene) => {
      const [outer, inner] = drawPair(scene)
      return [{ ...inner, what: 'wipe-broker', part: 0 }, ...moveAll(scene, outer), ...drawActorSteps(scene, 2)]
    },
  },
  {
    name: 'a node is behind, and clients move to it',
    needs: 'nodes',
    steps: (scene) => {
      const [behind] = drawTwo(scene)
      const span = drawSpan(scene)
      return [drawBehind(scene, span, behind), ...moveAll(scene, span), ...moveAll(scene, span)]
    },
  },
  {
    name: 'all nodes are cut off or slowed down at once',
    needs: 'nodes',
    steps: (scene) => {
      const span = drawSpan(scene)
      const fault = drawLinkFault(scene.random)
      const what = scene.hasBrokerLinks ? 'broker-link' : scene.broker === 'mesh' ? 'peer-link' : 'client-link'
      return [...each(scene.nodeCount, (link) => [{ ...span, what, link, ...fault } as Step]), ...moveAll(scene, span)]
    },
  },
  {
    name: 'streams are written, read and stopped, and their writers fall silent',
    needs: 'broker-log',
    wishes: () => ({ logged: 'all', streamCount: 2, publisher: { burstCount: 1, everyMs: 500 } }),
    steps: (scene) => [
      ...drawStreamSteps(scene, scene.random.integer(8, 14)),
      ...each(scene.random.integer(1, 3), () => [scene.random.chance(0.5) ? drawLinkStep(scene) : drawNodeStep(scene)]),
      ...(scene.random.chance(0.6) ? [drawBrokerStep(scene)] : []),
    ],
  },
  {
    name: 'all members of a queue group are on one node, which is cut off or stands still',
    needs: 'nodes',
    wishes: (random) => ({
      members: { count: random.integer(1, 3), node: TOGETHER },
      // Publishes of the members' own node take no way between nodes.
      publisher: { nodes: [TOGETHER + 1], maxInFlight: 400 },
    }),
    steps: (scene) => drawTogetherSteps(scene, TOGETHER),
  },
  {
    name: 'publishers are faster than the broker, and nodes have no time',
    needs: 'broker',
    // More than a node gives to a slow broker at a time: its publishers wait, and are refused.
    wishes: (random) => ({
      publisher: { burstCount: random.integer(20, 60), everyMs: 250, maxInFlight: 400, payloadBytes: [60, 1_000] },
    }),
    steps: (scene) => {
      const { random, nodeCount, partCount, hasBrokerLinks } = scene
      const [outer, inner] = drawPair(scene)
      const slow: Step[] = hasBrokerLinks
        ? each(nodeCount, (link) => [
            { ...outer, what: 'broker-link', link, fault: 'throttle', bytesPerSecond: random.pick([20_000, 50_000]) },
          ])
        : [{ ...inner, what: 'freeze-broker', part: random.integer(0, partCount - 1) }]
      const still = () => ({ ...drawSpan(scene, 1_500), node: random.integer(0, nodeCount - 1) })
      return [...slow, ...each(4, () => [{ ...still(), what: 'freeze-node' }])]
    },
  },
  {
    name: 'anything, and much of it',
    steps: (scene) => [
      ...each(scene.random.integer(2, 4), () => [scene.random.chance(0.5) ? drawLinkStep(scene) : drawNodeStep(scene)]),
      ...(scene.partCount > 0 && scene.random.chance(0.6) ? [drawBrokerStep(scene)] : []),
      ...drawActorSteps(scene, 6),
    ],
  },
]
