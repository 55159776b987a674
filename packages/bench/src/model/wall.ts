import { type ModelBroker, type Question, type Resource, trySize } from './size.js'

/** Where one broker, or one node without a broker, ends. */
export interface Wall {
  /** Largest number of connections that still fits. */
  readonly connections: number
  /** That runs out there; `null`: none below `MAX_CONNECTIONS`. */
  readonly resource: Resource | null
}

/** Beyond the number of people. */
const MAX_CONNECTIONS = 1e10
const STEPS = 80

/** The first wall of a workload as its connections grow, to a hundredth. */
export function firstWall(question: Omit<Question, 'connections'>): Wall {
  const at = (connections: number) => trySize({ ...question, connections }, 1)
  const beyond = at(MAX_CONNECTIONS)
  if (typeof beyond !== 'string') return { connections: MAX_CONNECTIONS, resource: null }
  const first = at(1)
  if (typeof first === 'string') return { connections: 0, resource: first }
  let [low, high] = [1, MAX_CONNECTIONS]
  for (let step = 0; step < STEPS && high / low > 1.01; step++) {
    const middle = Math.sqrt(low * high)
    if (typeof at(middle) === 'string') high = middle
    else low = middle
  }
  const resource = at(high)
  return { connections: low, resource: typeof resource === 'string' ? resource : null }
}

/** A resource in words. */
export const RESOURCES: Readonly<Record<Resource, string>> = {
  'node-follow': 'JavaScript thread of every node: logged messages',
  'node-main': 'JavaScript thread of every node: messages of the broker',
  'broker-cpu': 'CPU of the broker',
  'broker-log': 'the thread that writes the log',
  'broker-network': 'network of the broker',
  'one-node': 'the node: connections, cores or network',
}

/** What to do at a wall. */
export function adviceOf(resource: Resource, kind: ModelBroker): string {
  switch (resource) {
    case 'one-node':
      return 'several nodes with a broker, or each node with its own keys and back ends that publish to the right one'
    case 'node-follow':
      return '`--history-partitions` with connections kept together by key; fewer logged keys; then several brokers'
    case 'node-main':
      return 'connections kept together by key, so a node gets fewer keys; then several brokers'
    case 'broker-log':
      return '`--history-partitions`; then several brokers'
    case 'broker-network':
      return 'connections kept together by key, so fewer nodes get a message; larger nodes; several brokers'
    case 'broker-cpu':
      return kind === 'redis'
        ? 'several Redis, each with its nodes; connections kept together by key; larger nodes'
        : 'more cores; connections kept together by key; several brokers, each with its nodes'
  }
}
