// Mistakes that only the running programs have: the files of the folder are as they were, or were changed and loaded.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** The management plugin tells what it has collected: every 5 s, after the server itself has looked. */
const COLLECTED_MS = 15_000

/** Each `make` resolves to what undoes it. `check`: the finding of `doctor --production` that names it; `of`: the broker that can have it, else all. */
export const MISTAKES = [
  {
    name: 'CONFIG SET appendfsync everysec, while redis.conf says always',
    check: 'redis',
    of: 'redis',
    make: async ({ folder, run }) => {
      const password = readFileSync(path.join(folder, 'secrets/broker-password'), 'utf8').trim()
      const set = (value) =>
        run('redis-cli', ['CONFIG', 'SET', 'appendfsync', value], { env: { ...process.env, REDISCLI_AUTH: password } })
      await set('everysec')
      return () => set('always')
    },
  },
  {
    name: 'rabbitmqctl set_disk_free_limit 50MB, while rabbitmq.conf says 2GiB',
    check: 'rabbitmq',
    of: 'rabbitmq',
    make: async (tools) => {
      await rabbitmq(tools, 'rabbitmqctl', 'set_disk_free_limit', '50MB')
      await delay(COLLECTED_MS)
      return () => rabbitmq(tools, 'rabbitmqctl', 'set_disk_free_limit', '2GiB')
    },
  },
  {
    name: 'the log is on two of three servers',
    check: 'rabbitmq',
    of: 'rabbitmq',
    make: async (tools) => {
      await rabbitmq(tools, 'rabbitmq-streams', 'delete_replica', 'webmq.log', 'webmq-3@localhost')
      await delay(COLLECTED_MS)
      return () => rabbitmq(tools, 'rabbitmq-streams', 'add_replica', 'webmq.log', 'webmq-3@localhost')
    },
  },
  {
    name: 'a server of RabbitMQ is stopped',
    check: 'rabbitmq',
    of: 'rabbitmq',
    make: async ({ units, restart }) => {
      await units.get('webmq-broker@3.service').stop()
      return () => restart('webmq-broker@3.service')
    },
  },
  {
    name: 'a node is stopped',
    check: 'cluster',
    make: async ({ restart, units }) => {
      await units.get('webmq@3.service').stop()
      return () => restart('webmq@3.service')
    },
  },
  {
    name: 'metrics are for all, and the proxy forwards them',
    check: 'operators',
    make: (tools) =>
      changed(tools, {
        Caddyfile: [
          ['respond @operators 404', ''],
          ['reverse_proxy ', 'reverse_proxy /metrics 127.0.0.1:9101\n\treverse_proxy '],
        ],
        'webmq.json': [['"logLevel"', '"metrics": "all", "logLevel"']],
      }),
  },
  {
    name: 'the nodes take tokens without exp',
    check: 'token',
    make: (tools) => changed(tools, { 'webmq.json': [['"requireExp": true', '"requireExp": false']] }),
  },
  {
    name: 'pages of all sites may connect',
    check: 'stranger',
    make: (tools) => changed(tools, { 'webmq.json': [[/"origins".*/, '"origins": ["*"],']] }),
  },
]

/** A command line of the first server. */
async function rabbitmq({ folders, run }, program, ...args) {
  const env = {
    PATH: process.env.PATH,
    HOME: path.join(folders.state, 'webmq-broker-1'),
    ERL_EPMD_PORT: '4370',
    LANG: 'C.UTF-8',
  }
  await run(`/usr/lib/rabbitmq/bin/${program}`, ['--silent', '--node', 'webmq-1@localhost', ...args], { env })
}

/** Changes files, has their programs read them, and resolves to what undoes both. */
async function changed({ folder, reload }, files) {
  const before = new Map()
  for (const [name, changes] of Object.entries(files)) {
    const file = path.join(folder, name)
    before.set(file, readFileSync(file, 'utf8'))
    const after = changes.reduce((text, [from, to]) => text.replace(from, to), before.get(file))
    if (after === before.get(file)) throw new Error(`${name} has no ${changes[0][0]}`)
    writeFileSync(file, after)
  }
  await reload()
  return async () => {
    for (const [file, text] of before) writeFileSync(file, text)
    await reload()
  }
}
