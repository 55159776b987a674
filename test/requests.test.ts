import { expect, it, vi } from 'vitest'
import { WebMQError } from 'webmq-client'
import { request, respond, work } from 'webmq-client/requests'
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
    work(worker, 'jobs.*', (job) => jobs.push(job), { group: 'workers' }),
    respond(worker, 'double', (number) => 2 * Number(number)),
    respond(worker, 'bytes', (bytes) => bytes),
    respond(worker, 'refuses', () => {
      throw new WebMQError('E_FORBIDDEN', { message: 'not for you' })
    }),
    respond(worker, 'fails', () => Promise.reject(new Error('the password is 1234'))),
  ]
  for (const { ready } of memberships) await ready
  await stays.server.publish('jobs.1', 1)
  expect(await request(asker, 'double', 21)).toBe(42)
  expect(await request(asker, 'bytes', Uint8Array.of(0, 255))).toEqual(Uint8Array.of(0, 255))
  await expect(request(asker, 'refuses', 1)).rejects.toMatchObject({ code: 'E_FORBIDDEN', message: 'not for you' })
  await expect(request(asker, 'fails', 1)).rejects.toMatchObject({
    code: 'E_RESPONSE',
    message: 'the responder failed',
  })
  await expect(request(asker, 'nobody', 1)).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
  await expect(request(asker, 'double', 1, { signal: AbortSignal.abort() })).rejects.toMatchObject({
    code: 'E_ABORTED',
  })
  expect(errors).toMatchObject([{ message: 'the password is 1234' }])

  await leaves.server.stop({ drainMs: 0 })
  await vi.waitFor(() => expect(memberships.map(({ state }) => state)).toEqual(Array(5).fill('active')))
  await stays.server.publish('jobs.2', 2)
  await vi.waitFor(() => expect(jobs).toEqual([1, 2]))
  expect(await request(asker, 'double', 4)).toBe(8)

  for (const membership of memberships) await membership.leave()
  expect(stays.server.stats().queueGroups).toMatchObject({ memberCount: 0, groupCount: 0, requestCount: 0 })
  await expect(request(asker, 'double', 1)).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
})
