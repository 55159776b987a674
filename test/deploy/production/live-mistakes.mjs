// Mistakes that only the running programs have: the files of the folder are as they were, or were changed and loaded.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

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
