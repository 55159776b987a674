// Mistakes that only the running programs have: the files of the folder are as they were, or were changed and loaded.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/** Each `make` resolves to what undoes it. `check`: the finding of `doctor --production` that names it. */
export const MISTAKES = [
  {
    name: 'CONFIG SET appendfsync everysec, while redis.conf says always',
    check: 'redis',
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
    name: 'the proxy forwards /metrics, and the admin port is its upstream',
    check: 'operators',
    make: (tools) =>
      changed(
        tools,
        'Caddyfile',
        'reverse_proxy 127.0.0.1:8081',
        'reverse_proxy /metrics 127.0.0.1:9101\n\treverse_proxy 127.0.0.1:8081',
        [['respond @operators 404', '']],
      ),
  },
  {
    name: 'the nodes run with requireExp off',
    check: 'token',
    make: (tools) => changed(tools, 'webmq.json', '"requireExp": true', '"requireExp": false', []),
  },
]

/** Changes a file, restarts what reads it, and resolves to what undoes both. */
async function changed({ folder, restart }, name, from, to, more) {
  const file = path.join(folder, name)
  const before = readFileSync(file, 'utf8')
  const after = [[from, to], ...more].reduce((text, [one, other]) => text.replace(one, other), before)
  if (after === before) throw new Error(`${name} has no ${from}`)
  const units = name === 'Caddyfile' ? ['webmq-proxy.service'] : [1, 2, 3].map((n) => `webmq@${n}.service`)
  writeFileSync(file, after)
  await restart(...units)
  return async () => {
    writeFileSync(file, before)
    await restart(...units)
  }
}
