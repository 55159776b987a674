import { expect, it, vi } from 'vitest'
import { WebMQError } from 'webmq-client'
import { request, respond, work } from 'webmq-client/parts'
import { freePort } from 'webmq-services'
import { startClient, startServer } from './live.js'

it('goes on over moves of its members: workers and responders move to the node that stays', async () => {
  const places = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  const broker = `mesh://${places.join()}`
  const [stays, leaves] = await Promise.all(places.map((listen) => startServer({ broker, mesh: { listen } })))
  if (!stays || !leaves) throw new TypeError('two nodes')

  const urls = [leaves.url, stays.url]
  let tries = 0
  const url = () => urls[tries++] ?? stays.url
  const worker = startClient('', { url, reconnect: { minMs: 10 } }).client
  const asker = startClient(stays.url).client
  const errors: unknown[] = []
  worker.on('error', ({ error }) => errors.push(error))

  const jobs: unknown[] = []
  const memberships = [
    work('jobs.*', (job) => jobs.push(job), { client: worker, group: 'workers' }),
    respond('double', (number) => 2 * Number(number), { client: worker }),
    respond('bytes', (bytes) => bytes, { client: worker }),
    respond(
      'refuses',
      () => {
        throw new WebMQError('E_FORBIDDEN', { message: 'not for you' })
      },
      { client: worker },
    ),
    respond('fails', () => Promise.reject(new Error('the password is 1234')), { client: worker }),
  ]
  for (const { ready } of memberships) await ready
  await stays.server.publish('jobs.1', 1)
  expect(await request('double', 21, { client: asker })).toBe(42)
  expect(await request('bytes', Uint8Array.of(0, 255), { client: asker })).toEqual(Uint8Array.of(0, 255))
  await expect(request('refuses', 1, { client: asker })).rejects.toMatchObject({
    code: 'E_FORBIDDEN',
    message: 'not for you',
  })
  await expect(request('fails', 1, { client: asker })).rejects.toMatchObject({
    code: 'E_RESPONSE',
    message: 'the responder failed',
  })
  await expect(request('nobody', 1, { client: asker })).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
  await expect(request('double', 1, { client: asker, signal: AbortSignal.abort() })).rejects.toMatchObject({
    code: 'E_ABORTED',
  })
  expect(errors).toMatchObject([{ message: 'the password is 1234' }])

  await leaves.server.stop({ drainMs: 0 })
  await vi.waitFor(() => expect(memberships.map(({ state }) => state)).toEqual(Array(5).fill('active')))
  await stays.server.publish('jobs.2', 2)
  await vi.waitFor(() => expect(jobs).toEqual([1, 2]))
  expect(await request('double', 4, { client: asker })).toBe(8)

  for (const membership of memberships) await membership.close()
  expect(stays.server.stats().queueGroups).toMatchObject({ memberCount: 0, groupCount: 0, requestCount: 0 })
  await expect(request('double', 1, { client: asker })).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
})
