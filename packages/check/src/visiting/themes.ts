import type { Step } from '../playing/schedule.js'
import type { SeededRandom } from '../playing/seeded-random.js'
import { drawAbsence, drawActorSteps, drawLinkStep, drawSpan, type Scene } from '../playing/steps.js'
import { THEMES, type Theme } from '../playing/themes.js'

const LARGE_PAYLOADS = { payloadBytes: [60, 3_000] } as const
/** A page that is loaded again shows the newest messages. */
const RELOADS = 2

const each = (count: number, make: (index: number) => readonly Step[]): Step[] =>
  Array.from({ length: count }, (_, index) => make(index)).flat()

/** What clients and their links do to an installation whose nodes and broker are left alone. */
const OF_LINKS: readonly Theme[] = [
  {
    name: 'links between clients and the installation break',
    steps: (scene) => [...each(scene.random.integer(2, 4), () => [drawLinkStep(scene)]), ...drawActorSteps(scene, 2)],
  },
  {
    name: 'pages are loaded again',
    steps: (scene) =>
      each(scene.listenerCount, (actor) =>
        each(RELOADS, () => [{ ...drawSpan(scene), forMs: 0, what: 'reload-listener', actor }]),
      ),
  },
  {
    name: 'readers are slow, and come back elsewhere',
    wishes: () => ({ publisher: LARGE_PAYLOADS }),
    steps: (scene) => [
      { ...drawSpan(scene), what: 'client-link', link: 0, fault: 'throttle', bytesPerSecond: drawRate(scene.random) },
      ...each(scene.listenerCount, (actor) => drawAbsence(scene, 'move-listener', actor)),
    ],
  },
]

const COMMAND: Theme = {
  name: 'the command of the operator runs, and clients move',
  steps: (scene) => [
    { ...drawSpan(scene), forMs: 0, what: 'run-command', command: 0 },
    ...each(scene.listenerCount, (actor) => [{ ...drawSpan(scene), forMs: 0, what: 'move-listener', actor }]),
  ],
}

/** @param commandCount Commands of the operator: every other schedule has one, in turn. */
export function themesOfVisit(isLogged: boolean, commandCount: number): Theme[] {
  const ofClients = THEMES.filter(({ isOfClients, needs }) => isOfClients && (needs !== 'log' || isLogged))
  const plain = [...ofClients, ...OF_LINKS]
  if (commandCount === 0) return plain
  return plain.flatMap((theme, index) => [withCommand(index % commandCount), theme])
}

function withCommand(command: number): Theme {
  return {
    ...COMMAND,
    steps: (scene: Scene) =>
      COMMAND.steps(scene).map((step) => (step.what === 'run-command' ? { ...step, command } : step)),
  }
}

function drawRate(random: SeededRandom): number {
  return random.pick([4_000, 10_000, 50_000])
}
