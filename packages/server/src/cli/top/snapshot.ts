import { WebMQError } from 'webmq-client/protocol'
import type { AnswerOf } from '../../http/api/route.js'
import type { ROUTES } from '../../http/api/routes.js'
import type { ApiInfo } from '../../http/client/webmq-api.js'
import type { ApiSource } from './source.js'

type Patterns = AnswerOf<(typeof ROUTES)['patterns']>

export interface Snapshot extends Pick<Patterns, 'patternCount' | 'patterns'> {
  readonly at: string
  /** The node that has answered; patterns and output are its own. */
  readonly node: string
  readonly nodes: ApiInfo['nodes']
  /** Names of nodes that did not answer. */
  readonly missing: readonly string[]
  /** Of the metrics of the node; absent where this machine may not read them. */
  readonly output?: { readonly slowConsumers: number; readonly waitingBytes: number }
}

export async function lookAt(source: ApiSource, patternCount: number): Promise<Snapshot> {
  const [info, patterns, output] = await Promise.all([
    json<ApiInfo>(source, '/api/info'),
    json<Patterns>(source, `/api/patterns?limit=${Math.min(patternCount, 1_000)}`),
    outputOf(source),
  ])
  return {
    at: new Date().toISOString(),
    node: info.node,
    nodes: info.nodes,
    missing: info.missing,
    patternCount: patterns.patternCount,
    patterns: patterns.patterns,
    ...(output === undefined ? {} : { output }),
  }
}

async function json<T>(source: ApiSource, path: string): Promise<T> {
  const text = await source.text(path)
  try {
    return JSON.parse(text) as T
  } catch (cause) {
    throw new WebMQError('E_UNSUPPORTED', { detail: `${path} is answered by something else`, cause })
  }
}

/** Metrics have an audience of their own, and may be off. */
async function outputOf(source: ApiSource): Promise<Snapshot['output']> {
  const text = await source.text('/metrics').catch((error: unknown) => {
    if (error instanceof WebMQError) return undefined
    throw error
  })
  const [slowConsumers, waitingBytes] = ['webmq_transport_slow_consumers_total', 'webmq_transport_outbox_bytes'].map(
    (name) => sumOf(text ?? '', name),
  )
  return slowConsumers === undefined || waitingBytes === undefined ? undefined : { slowConsumers, waitingBytes }
}

function sumOf(text: string, name: string): number | undefined {
  const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'gm'))].map(([, value]) =>
    Number(value),
  )
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0)
}
