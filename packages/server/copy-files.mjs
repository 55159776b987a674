// The package has docs/errors.md, for `webmq-server explain`, and of deploy/ what `webmq-server init` writes. The build and
// every pack copy them.
import { copyFileSync, cpSync, rmSync } from 'node:fs'

const here = (name) => new URL(name, import.meta.url)

copyFileSync(here('../../docs/errors.md'), here('errors.md'))

/** Of `deploy/`. */
const COPIED = [
  'grafana/webmq.json',
  'helm',
  'image/defaults.json',
  'image/healthy.sh',
  'prometheus/rabbitmq.rules.yml',
  'prometheus/webmq.rules.yml',
  'systemd/webmq.service',
]
rmSync(here('templates/deploy'), { recursive: true, force: true })
for (const name of COPIED) {
  cpSync(here(`../../deploy/${name}`), here(`templates/deploy/${name}`), { recursive: true })
}
