import { CannotRun } from '../exit-codes.js'

/** What `GET /api/info` tells of a node. */
export interface NodeInfo {
  readonly node: string
  readonly version: string
  readonly broker: string
}

const TIMEOUT_MS = 5_000

/** All nodes of an installation, by its HTTP API. @throws {CannotRun} when it does not answer so. */
export async function nodeInfos(url: string, apiKey: string): Promise<NodeInfo[]> {
  const address = new URL('/api/info', url.replace(/^ws/, 'http'))
  let nodes: unknown
  try {
    const headers = { authorization: `Bearer ${apiKey}` }
    const response = await fetch(address, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) })
    const body = (await response.json()) as { readonly nodes?: unknown; readonly code?: string }
    if (!response.ok) throw new Error(`${response.status} ${body.code ?? ''}`)
    nodes = body.nodes
  } catch (error) {
    throw new CannotRun(`${address} did not answer: ${error instanceof Error ? error.message : String(error)}`)
  }
  return Array.isArray(nodes) ? nodes.map(infoOf) : []
}

function infoOf(node: Readonly<Record<string, unknown>>): NodeInfo {
  return { node: String(node.node), version: String(node.version), broker: String(node.broker) }
}
