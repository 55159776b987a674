// What a million connections and a fleet of many nodes need, for docs/scaling.md, from figures.
import { formatCell } from '../dist/report/format-cell.js'
import { lineOf } from '../dist/scenarios/nodes/growth.js'

const NOTHING = '–'
const MILLION = 1_000_000

/** Published figures of others, with their source. */
const OTHERS = [
  {
    title: 'Centrifugo PRO, tuned',
    held: '[1,000,000][c-idle]',
    cores: '[2.33][c-idle]',
    memory: '[11.3 GB, 11.6 kB each][c-idle]',
    kernel: '[about 4.2 GB][c-idle]',
    machine: '[16 vCPU, 30 GB][c-idle]',
  },
  {
    title: 'Centrifugo PRO, defaults',
    held: '[200,000][c-idle]',
    cores: '[0.94][c-idle]',
    memory: '[5.4 GB, 27 kB each][c-idle]',
    kernel: '[about 4 kB each][c-idle]',
    machine: '[the same][c-idle]',
  },
  {
    title: 'AnyCable Pro',
    held: '[822,037][a-caps]',
    cores: '[not said][a-caps]',
    memory: '[18 kB each][a-caps]',
    kernel: '[not said][a-caps]',
    machine: '[32 GB][a-caps]',
  },
]

/** A million idle connections beside others. @param {ReadonlyMap<string, import('./figures.mjs').Figures>} tables */
export function millionTable(tables) {
  const figures = tables.get('held')
  const [row] = figures?.rows ?? []
  const own = row === undefined ? {} : heldTexts(row, figures)
  const line = (title, key) => [title, own[key] ?? NOTHING, ...OTHERS.map((other) => other[key])]
  return {
    titles: ['idle, pings every 25 s', 'WebMQ', ...OTHERS.map(({ title }) => title)],
    rows: [
      line('connections held', 'held'),
      line('busy cores', 'cores'),
      line('memory of the server', 'memory'),
      line('memory of the kernel, its side', 'kernel'),
      line('machine', 'machine'),
    ],
  }
}

function heldTexts({ subscribers, serverCpuShare, coresPerMillion, bytesPerConnection, kernelBytesPerSide }, figures) {
  const bytes = (value) => formatCell(value, 'bytes')
  const number = (value) => formatCell(value, 'number')
  return {
    held: `${formatCell(subscribers, 'count')}; a million by arithmetic`,
    cores: `${number(serverCpuShare)}; a million: ${number(coresPerMillion)}`,
    memory: `${bytes(bytesPerConnection)} each; a million: ${bytes(bytesPerConnection * MILLION)}`,
    kernel: `${bytes(kernelBytesPerSide)} each; a million: ${bytes(kernelBytesPerSide * MILLION)}`,
    machine: figures.machine.replace(/, Linux [^,]+/, ''),
  }
}

/** The figures of a fleet whose growth is shown. */
const GROWING = [
  ['a node at rest, ms of CPU per second', 'restNodeMs'],
  ['the broker at rest, ms of CPU per second and node', 'restBrokerMs'],
  ['the broker at rest, bytes per second to a node', 'restBytes'],
  ['a node joins: bytes sent', 'joinBytes'],
  ['a pattern: its node, µs', 'patternNodeUs'],
  ['a pattern: objects of the broker', 'patternObjects'],
  ['a logged message: the publishing node, µs', 'loggedPublisherUs'],
  ['a logged message: each other node, µs', 'loggedNodeUs'],
  ['a logged message: the broker, µs', 'loggedBrokerUs'],
  ['a logged message: bytes sent', 'loggedBytes'],
  ['a presence member: each node, µs', 'memberNodeUs'],
  ['a presence member: bytes sent', 'memberBytes'],
  ["an operator's question: all nodes, µs", 'questionNodesUs'],
  ['connections of the broker', 'brokerConnections'],
  ['objects of the broker', 'brokerObjects'],
]

/** What figures of a fleet grow by with each node. @param {ReadonlyMap<string, import('./figures.mjs').Figures>} tables */
export function growthTable(tables) {
  const rows = tables.get('a-fleet-by-its-size')?.rows ?? []
  const targets = [...new Set(rows.map(({ target }) => target))]
  return {
    titles: ['of N nodes', ...targets.map((target) => target.split('+')[1])],
    rows: GROWING.map(([title, key]) => [
      title,
      ...targets.map((target) =>
        lineText(
          lineOf(
            rows.filter((row) => row.target === target),
            key,
          ),
        ),
      ),
    ]),
  }
}

/** Sizes of fleets that no run has had: their figures are arithmetic. */
const FAR = [10, 100, 200]
/** Of a thread or core, as docs/scaling.md plans. */
const HEADROOM = 0.6
const US_PER_SECOND = 1_000_000

/** Where each setup ends, by the lines of {@link growthTable}. */
export function endsTable(tables) {
  const rows = tables.get('a-fleet-by-its-size')?.rows ?? []
  const targets = [...new Set(rows.map(({ target }) => target))]
  const at = (target, key, nodes) => {
    const line = lineOf(
      rows.filter((row) => row.target === target),
      key,
    )
    return line === null ? undefined : Math.max(0, line.base + line.slope * nodes)
  }
  const each = (text) => FAR.map(text).join(' / ')
  const perSecond = (us) =>
    us === undefined || us === 0 ? NOTHING : formatCell((HEADROOM * US_PER_SECOND) / us, 'rate')
  const share = (ms) => (ms === undefined ? NOTHING : formatCell(ms / 1_000, 'percent'))
  const times = (value, count) => (value === undefined ? undefined : value * count)
  const megabits = (bytes) => (bytes === undefined ? NOTHING : formatCell((bytes * 8_000) / MILLION, 'number'))
  return {
    titles: ['setup', ...ENDS],
    rows: targets.map((target) => [
      target.split('+')[1],
      each((nodes) => perSecond(at(target, 'loggedBrokerUs', nodes))),
      each((nodes) => megabits(at(target, 'loggedBytes', nodes))),
      each((nodes) => share(at(target, 'restNodeMs', nodes))),
      each((nodes) => share(times(at(target, 'restBrokerMs', nodes), nodes))),
    ]),
  }
}

const ENDS = [
  `logged messages/s on ${HEADROOM * 100} % of a core of the broker, with ${FAR.join(' / ')} nodes`,
  'Mbit/s that it sends for 1,000 of them per second',
  'a node at rest, of its thread',
  'the broker at rest, of a core',
]

/** A slope that is small beside the figure is noise. */
const FLAT_SHARE = 0.1
const LARGEST_FLEET = 32

function lineText(line) {
  if (line === null) return NOTHING
  const { base, slope } = line
  const number = (value) => formatCell(value, 'number')
  const most = base + slope * LARGEST_FLEET
  if (Math.abs(slope * LARGEST_FLEET) <= Math.abs(most) * FLAT_SHARE) return number(most)
  if (Math.abs(base) <= Math.abs(most) * FLAT_SHARE) return `${number(slope)} N`
  return base < 0 ? `${number(slope)} N - ${number(-base)}` : `${number(base)} + ${number(slope)} N`
}
