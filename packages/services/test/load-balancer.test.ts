import { existsSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { obtainBalancer } from '../src/balancer-program.js'
import { startLoadBalancer } from '../src/index.js'
import { dataFolderOf, processesOf } from './running-processes.js'

const INSTALL_TIMEOUT_MS = 300_000

beforeAll(async () => {
  await obtainBalancer('haproxy')
  await obtainBalancer('nginx')
}, INSTALL_TIMEOUT_MS)

describe('a load balancer', () => {
  it('spreads connections over the nodes, and leaves out one that is not ready or is gone', async () => {
    const nodes = await Promise.all(['a', 'b', 'c'].map(startNode))
    await using balancer = await startLoadBalancer({ ports: nodes.map(({ port }) => port) })
    expect(balancer.port).toBeLessThan(32_768)
    await expect.poll(() => answers(balancer.url)).toEqual(['a', 'b', 'c'])

    const [a, b] = nodes
    if (a === undefined || b === undefined) throw new Error('there are three')
    a.state.isReady = false
    await expect.poll(() => answers(balancer.url)).toEqual(['b', 'c'])
    b.server.closeAllConnections()
    b.server.close()
    await expect.poll(() => answers(balancer.url)).toEqual(['c'])
    a.state.isReady = true
    await expect.poll(() => answers(balancer.url)).toEqual(['a', 'c'])
    expect(balancer.cpuSeconds()).toBeGreaterThanOrEqual(0)
    expect(balancer.peakRssBytes()).toBeGreaterThan(1_000_000)
  })

  it('keeps the connections of a node that leaves, and ends those of one that stands still', async () => {
    const nodes = await Promise.all(['a', 'b'].map(startNode))
    await using balancer = await startLoadBalancer({ ports: nodes.map(({ port }) => port), checkTimeoutMs: 1_000 })
    await expect.poll(() => answers(balancer.url)).toEqual(['a', 'b'])
    const [leaving, standing] = nodes
    if (leaving === undefined || standing === undefined) throw new Error('there are two')
    const ends: string[] = []
    for (const _ of nodes) {
      const response = await fetch(`${balancer.url}/endless`)
      const name = String(response.headers.get('name'))
      response.text().then(
        () => ends.push(name),
        () => ends.push(name),
      )
    }

    leaving.state.isReady = false
    await expect.poll(() => answers(balancer.url)).toEqual(['b'])
    standing.state.isStanding = true
    await expect.poll(() => ends).toEqual(['b'])
  })

  it('by nginx asks the next node when one refuses, or answers 503', async () => {
    const nodes = await Promise.all(['a', 'b', 'c'].map(startNode))
    await using balancer = await startLoadBalancer({ ports: nodes.map(({ port }) => port), program: 'nginx' })
    await expect.poll(() => answers(balancer.url)).toEqual(['a', 'b', 'c'])
    const [a, b] = nodes
    if (a === undefined || b === undefined) throw new Error('there are three')
    a.server.closeAllConnections()
    a.server.close()
    b.state.isReady = false
    expect(await answers(`${balancer.url}/ready`)).toEqual(['c'])
  })

  it.each(['haproxy', 'nginx'] as const)('by %s leaves no process and no file behind', async (program) => {
    const balancer = await startLoadBalancer({ ports: [1], program })
    const folder = dataFolderOf(program)
    expect(processesOf(folder).map(({ name }) => name)).toContain(program)
    await balancer.stop()
    await balancer.stop()
    expect(processesOf(folder)).toEqual([])
    expect(existsSync(folder)).toBe(false)
  })
})

interface StartedNode {
  readonly server: Server
  readonly port: number
  /** A node that stands still accepts requests and answers none. */
  readonly state: { isReady: boolean; isStanding: boolean }
}

/** A node that answers its name, on `/ready` whether it accepts connections, and on `/endless` without an end. */
async function startNode(name: string): Promise<StartedNode> {
  const state = { isReady: true, isStanding: false }
  const server = createServer((request, response) => {
    if (state.isStanding) return
    response.statusCode = request.url === '/ready' && !state.isReady ? 503 : 200
    response.setHeader('name', name)
    if (request.url === '/endless') response.write(name)
    else response.end(name)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, port: (server.address() as AddressInfo).port, state }
}

/** The nodes that answer several new connections in a row. */
async function answers(url: string): Promise<string[]> {
  const names: string[] = []
  for (let count = 0; count < 9; count++) {
    const response = await fetch(url, { headers: { connection: 'close' } })
    names.push(response.status === 200 ? await response.text() : String(response.status))
  }
  return [...new Set(names)].toSorted()
}
