import { appendFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { brokerOptions, historyOf } from 'webmq-conformance'
import { it } from 'vitest'
import { freePort, startNats } from 'webmq-services'
import { createNatsBroker } from '../../src/brokers/remote-brokers.js'
const run = promisify(execFile)
it('boots', async () => {
  const until = Date.now() + 150_000
  for (let n = 0; Date.now() < until; n++) {
    const isSmall = n % 2 === 0
    let folder: string | undefined
    if (isSmall) {
      folder = await mkdtemp('/tmp/webmq-disk-')
      await run('mount', ['-t', 'tmpfs', '-o', 'size=160m', 'tmpfs', folder])
    }
    const ports = await Promise.all([freePort(), freePort(), freePort()])
    const routes = ports.map((port) => `nats-route://127.0.0.1:${port}`).join()
    const log = `/tmp/disk/boot-${process.pid}-${n}`
    const servers = await Promise.all(ports.map((port) => startNats({ ...(folder === undefined ? {} : { dataParent: folder }), hasJetStream: true, config: `server_name: s${port}\ndebug: true\nlog_file: "${log}-${port}"\ncluster { name: c, listen: "127.0.0.1:${port}", routes: [${routes}] }` })))
    const hosts = servers.map(({ url }) => new URL(url).host).join()
    const broker = await createNatsBroker({ ...brokerOptions({ maxPayloadBytes: 262_144, ...historyOf('#=1000') }), brokerTimeoutMs: 3_000, brokerStartTimeoutMs: 12_000, brokerNamespace: 'a', broker: `nats://${hosts}?replicas=3` })
    const at = performance.now()
    const failure = await broker.start({ deliver: () => true, status: () => undefined, gap: () => undefined, refused: () => undefined }).then(() => undefined, (e) => String(e).slice(-100))
    appendFileSync('/tmp/disk/boot.txt', `${log} ${isSmall ? 'small' : 'large'} ${Math.round(performance.now() - at)} ms ${failure ?? 'ok'}\n`)
    await broker.stop(0).catch(() => undefined)
    await Promise.all(servers.map((server) => server.stop()))
    if (failure === undefined) await run('sh', ['-c', `rm ${log}-*`])
    if (folder !== undefined) { await run('umount', ['--lazy', folder]); await rm(folder, { recursive: true }) }
  }
}, 400_000)
