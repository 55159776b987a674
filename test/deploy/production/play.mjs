// From an empty folder to three nodes behind TLS with their alerts and their board, with the programs of this machine:
//
//   unshare --net --mount node test/deploy/production/play.mjs [broker]
//
// It does what the README.md of the folder says. systemd is played: its units are read, and their commands run as they are. In a
// network of its own no port is taken. The last line is JSON: how long it took, and what `doctor --production` said.
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, get as plainGet } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { makeCertificate, obtainService } from 'webmq-services'
import { MISTAKES } from './live-mistakes.mjs'
import { Unit, wantedBy } from './units.mjs'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const HOST = 'chat.example.org'
const START_TIMEOUT_MS = 120_000
const CLI = `${ROOT}packages/server/bin/webmq-server.js`
const [broker = 'redis'] = process.argv.slice(2)

const base = mkdtempSync(path.join(tmpdir(), 'webmq-production-'))
const folder = path.join(base, 'webmq')
const folders = { units: path.join(folder, 'systemd'), run: path.join(base, 'run'), state: path.join(base, 'state') }
const units = new Map()
let receiver

try {
  await play()
} catch (error) {
  for (const { name, output } of units.values()) console.error(`--- ${name}\n${output}`)
  console.error(error)
  process.exitCode = 1
} finally {
  receiver?.close()
  await Promise.all([...units.values()].map((unit) => unit.stop()))
  rmSync(base, { recursive: true, force: true })
}

async function play() {
  ownNetwork()
  const authority = await makeCertificate({ names: ['authority.test'], isIssuer: true })
  const certificate = await makeCertificate({ names: [HOST], days: 90, issuer: authority })
  for (const [name, text] of [
    ['ca.pem', authority.cert],
    ['tls.crt', certificate.cert],
    ['tls.key', certificate.key],
  ]) {
    writeFileSync(path.join(base, name), text, { mode: 0o600 })
  }
  // What `npm install --global` would make.
  mkdirSync(path.join(base, 'lib/node_modules'), { recursive: true })
  symlinkSync(`${ROOT}packages/server`, path.join(base, 'lib/node_modules/webmq-server'))
  const alerts = []
  receiver = createServer((request, response) => {
    let body = ''
    request.on('data', (text) => (body += text)).on('end', () => alerts.push(JSON.parse(body)))
    response.end()
  }).listen(9999, '127.0.0.1')

  if (broker === 'nats') await takeNats()
  const startedMs = performance.now()
  const seconds = () => Math.round((performance.now() - startedMs) / 100) / 10
  const file = (name) => path.join(base, name)
  const flags = ['--host', HOST, '--broker', broker, '--cert', file('tls.crt'), '--key', file('tls.key')]
  await webmq(['init', 'systemd', folder, ...flags, '--alerts', 'http://127.0.0.1:9999/'])
  const commands = commandsOf(readFileSync(path.join(folder, 'README.md'), 'utf8'))
  for (const name of wantedBy(folders.units, 'webmq.target')) {
    const unit = new Unit(name, folders)
    if (unit.missing === undefined) units.set(name, unit)
    else console.log(`${name} is not started: ${unit.missing} is not on this machine`)
  }
  for (const unit of units.values()) void unit.startAfter(units)
  await until('three nodes are ready', () =>
    Promise.all([1, 2, 3].map((n) => fetched(`http://127.0.0.1:910${n}/ready`))),
  )
  const readyS = seconds()
  await until('the proxy answers', async () => {
    const { stdout } = await run('curl', ['-sf', '--cacert', file('ca.pem'), `https://${HOST}/health`])
    if (!stdout.includes('webmq')) throw new Error(stdout)
  })
  const proxyS = seconds()
  await until('Prometheus has asked the nodes', async () => {
    const { data } = JSON.parse(await fetched('http://127.0.0.1:9090/api/v1/query?query=up{job="webmq"}'))
    if (data.result.filter(({ value }) => value[1] === '1').length !== 3) throw new Error(JSON.stringify(data))
  })
  const dashboardS = seconds()
  const empty = await emptyPanels()
  const doctor = await doctorSays([])
  const killed = await doctorSays(['--kill-one', `kill -9 ${units.get('webmq@2.service').child.pid}`])
  // The lease of the killed node ends, and Prometheus reaches its successor.
  await untilInOrder()
  const found = []
  for (const mistake of MISTAKES.filter(({ of = broker }) => of === broker)) {
    const undo = await mistake.make({ folder, folders, restart, reload, units, run })
    found.push({ mistake: mistake.name, says: (await doctorSays([])).filter(({ status }) => status !== 'ok') })
    await undo()
    await untilInOrder()
  }
  console.log(
    JSON.stringify({ commands: commands.length + 1, readyS, proxyS, dashboardS, empty, doctor, killed, found }),
  )

  async function restart(...names) {
    await Promise.all(names.map((name) => units.get(name).restart(folders)))
    await until('nodes are ready', () => Promise.all([1, 2, 3].map((n) => fetched(`http://127.0.0.1:910${n}/ready`))))
    await until('the proxy answers', () => run('curl', ['-sf', '--cacert', file('ca.pem'), `https://${HOST}/ready`]))
  }

  /** `systemctl reload 'webmq@*'`, and a restart of the proxy. */
  async function reload() {
    for (const n of [1, 2, 3]) units.get(`webmq@${n}.service`).child.kill('SIGHUP')
    await restart('webmq-proxy.service')
  }

  async function untilInOrder() {
    await until('the doctor has nothing to say', async () => {
      const says = (await doctorSays([])).filter(({ status }) => status !== 'ok')
      if (says.length > 0) throw new Error(JSON.stringify(says))
    })
  }

  async function doctorSays(more) {
    const args = ['doctor', '--production', folder, '--ca', file('ca.pem'), '--json', ...more]
    const { stdout } = await run(process.execPath, [CLI, ...args]).catch((error) => {
      if (error.code === 1 && error.stdout !== '') return error
      throw error
    })
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  }
}

/** Loopback alone, and the host name there. */
function ownNetwork() {
  if (
    !execFileSync('ip', ['-o', 'link'], { encoding: 'utf8' })
      .trim()
      .match(/^1: lo:[^\n]*$/)
  ) {
    throw new Error('run it in a network of its own: unshare --net --mount node …')
  }
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
  const hosts = path.join(base, 'hosts')
  writeFileSync(hosts, `127.0.0.1 localhost ${HOST}\n`)
  execFileSync('mount', ['--make-rprivate', '/'])
  execFileSync('mount', ['--bind', hosts, '/etc/hosts'])
}

/** Older distributions have a NATS that does not know sync_interval; here a newer one stands in its place. */
async function takeNats() {
  const { place } = await obtainService('nats', '2.10')
  if (existsSync('/usr/sbin/nats-server')) execFileSync('mount', ['--bind', place, '/usr/sbin/nats-server'])
}

/** The commands of a README.md. */
function commandsOf(text) {
  const [, block] = /^```sh\n([\s\S]*?)^```$/m.exec(text)
  return block.trim().split('\n')
}

/** Panels whose queries get nothing, of those that every node has from its start. */
async function emptyPanels() {
  const { panels } = JSON.parse(readFileSync(path.join(folder, 'grafana/boards/webmq.json'), 'utf8'))
  const names = new Set()
  let asked = 0
  for (const { title, targets = [] } of panels) {
    for (const { expr } of targets) {
      const query = expr.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*')
      const { status } = JSON.parse(
        await fetched(`http://127.0.0.1:9090/api/v1/query?query=${encodeURIComponent(query)}`),
      )
      asked += 1
      if (status !== 'success') names.add(title)
    }
  }
  return { asked, failed: [...names] }
}

async function webmq(args) {
  const env = { ...process.env, npm_config_global_prefix: base }
  await run(process.execPath, [CLI, ...args], { env })
}

function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    execFile(command, args, { maxBuffer: 16 * 1024 * 1024, ...options }, (error, stdout, stderr) => {
      if (error === null) resolve({ stdout, stderr })
      else reject(Object.assign(error, { stdout, stderr }))
    })
  })
}

function fetched(url) {
  return new Promise((resolve, reject) => {
    plainGet(url, { agent: false }, async (response) => {
      let text = ''
      for await (const part of response.setEncoding('utf8')) text += part
      if (response.statusCode === 200) resolve(text)
      else reject(new Error(`${url}: ${response.statusCode} ${text}`))
    }).on('error', reject)
  })
}

async function until(what, act) {
  const deadlineMs = performance.now() + START_TIMEOUT_MS
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (performance.now() > deadlineMs) throw new Error(`not so: ${what}`, { cause: error })
      await delay(500)
    }
  }
}
