// The page docs/configuration.md, from the table of options. The server must be compiled.
import { wrap } from '../../packages/server/dist/doors/cli/config-init.js'
import { placeholderOf } from '../../packages/server/dist/doors/cli/option-flags.js'
import { hasFileVariant } from '../../packages/server/dist/doors/cli/option-sources.js'
import { describeDefault, environmentNameOf } from '../../packages/server/dist/doors/options/spec.js'
import { OPTION_SECTIONS, OPTIONS } from '../../packages/server/dist/doors/options/table.js'
import { describeRange } from '../../packages/server/dist/doors/options/values.js'

const INTRODUCTION = `# Configuration

This page lists every option of the server with its default, flag and environment variable. The heading is the
option's name in the config file and in \`createServer({ … })\`. \`webmq-server --help-all\` shows the same list.
\`webmq-server config check\` checks flags, environment and file without a start, and prints each value with its source.

This page is generated. After a change of \`packages/server/src/doors/options/table/\`, run
\`npm run docs:configuration\`; a test fails until you do.

## Where values come from

Flags override the environment, the environment overrides the config file, the file overrides \`PORT\` and the
defaults.

- **Flags** accept units: \`--max-payload 64KiB\`, \`--drain-timeout 10s\`. Sizes take \`KiB\`, \`MiB\` and \`GiB\` (\`kb\`, \`mb\`
  and \`gb\` mean the same multiples of 1,024). Times take \`ms\`, \`s\`, \`m\`, \`h\` and \`d\`. The flag of a list may be
  repeated. \`--no-…\` turns off a switch that the environment or the file turned on.
- **Environment variables** are \`WEBMQ_\` and the name of the flag: \`WEBMQ_MAX_PAYLOAD=64KiB\`. Commas separate lists; \`;\`
  separates those of \`history\`, \`retain\`, \`meta\`, \`overflow\` and \`urgent\`, also in a program. Switches are \`on\` or \`off\`.
  An empty variable counts as not set. For tokens an empty variable is an error, because a lost secret must not open the
  server to everyone. Unknown \`WEBMQ_…\` variables cause a warning.
- **The config file** is named by \`--config webmq.json\` or \`WEBMQ_CONFIG\`. It holds one JSON object with the names
  below; comments and trailing commas are allowed. \`jwt.secret\` may also be written as \`{ "jwt": { "secret": … } }\`.
  Numbers are whole, and in the unit of the option's name; texts may have a unit. Switches are \`true\` or \`false\`. Unknown
  names are errors. \`webmq-server config init\` writes a first file, and \`config schema\` prints its JSON Schema for editors.
- **\`PORT\`** is set by hosting platforms. It replaces the default port; flag, \`WEBMQ_PORT\` and config file override it.
- **The file of defaults** is named by \`WEBMQ_DEFAULTS\` and looks like the config file. Everything above overrides it.
  It is for images and packages whose defaults differ, such as the container image's \`"host": "0.0.0.0"\`.
- **Secrets**, and addresses with a password, belong in files, because every user of the machine can see flags:
  \`--jwt-secret-file\`, \`WEBMQ_JWT_SECRET_FILE\`, or \`"secretFile"\` in the config file. Paths are relative to the working
  directory. A changed file is read again within 5 s.

SIGHUP reads all of this again, and so does \`server.reload({ … })\` in a program. Options that say "reloads" below then take
their new value; the others keep theirs until the next start ([operations](operations.md#reloading)).

\`\`\`json
{
  "host": "0.0.0.0",
  "origins": ["https://app.example.com"],
  "maxPayloadBytes": "64KiB",
  "jwt": { "jwksUrl": "https://id.example.com/.well-known/jwks.json", "audience": "webmq" }
}
\`\`\`

## Rules between options

- \`maxOutboxBytes\` is at least \`maxPayloadBytes\` + 4,096. Otherwise every large message would close its receivers.
- Without tokens, the server binds loopback addresses only, unless you set \`insecure\` (\`E_INSECURE\`).
- Tokens need a \`jwt.secret\`, a \`jwt.publicKey\` or a \`jwt.jwksUrl\`, or several of them. A key set must come over
  \`https://\` or from loopback, unless you set \`insecure\`.
- \`tls.certFile\` and \`tls.keyFile\` name equally many files, in the same order. Each key
  belongs to its certificate.

A value that is not allowed ends the start with \`E_OPTION_INVALID\` (exit code 2). The error names the option, the
value and the allowed values.

## What urgent keys cost

A busy thread delays messages, so that several share one write (\`flushIntervalMs\`). Those of \`urgent\` keys do not wait.
With 1,000 connections that get every message, 100 messages/s take as much of a core as before, and p50 is 6.2 ms instead of
7.4; 1,000 messages/s take 0.94 cores instead of 0.59, and p50 is 25 ms instead of 31.
`

const MAX_LINE_CHARS = 120

/** The whole of `docs/configuration.md`. */
export function configurationPage() {
  const sections = OPTION_SECTIONS.map((section) => {
    const entries = OPTIONS.filter((spec) => spec.section === section).map(describeOption)
    return `\n## ${section}\n${entries.join('')}`
  })
  return INTRODUCTION + sections.join('')
}

function describeOption(spec) {
  const flag = spec.type === 'switch' ? `--${spec.flag}` : `--${spec.flag} <${placeholderOf(spec)}>`
  const fileFlag = hasFileVariant(spec) ? `, \`--${spec.flag}-file <file>\`` : ''
  const fileVariable = hasFileVariant(spec) ? `, \`${environmentNameOf(spec)}_FILE\`` : ''
  const shortFlag = spec.shortFlag === undefined ? '' : `-${spec.shortFlag}\`, \``
  const parts = [
    `Default: ${describeDefaultInDocs(spec)}`,
    ...(spec.type === 'switch' ? [] : [`Allowed: ${describeType(spec)}`]),
    `\`${shortFlag}${flag}\`${fileFlag}`,
    `\`${environmentNameOf(spec)}\`${fileVariable}`,
    ...(spec.reloadable === true ? ['reloads'] : []),
  ]
  return `
### \`${spec.name}\`

${wrap(spec.detail === undefined ? spec.help : `${spec.help} ${spec.detail}`, '', MAX_LINE_CHARS)}

${wrap(parts.join(' · '), '', MAX_LINE_CHARS)}
`
}

function describeDefaultInDocs(spec) {
  const text = describeDefault(spec)
  if (text === undefined) return 'none'
  // Values are shown as code, descriptions as text.
  const isDescription = spec.type === 'list' || spec.type === 'switch' || ('defaultText' in spec && spec.defaultText)
  return isDescription ? text : `\`${text}\``
}

function describeType(spec) {
  switch (spec.type) {
    case 'integer':
      // The introduction says that numbers are whole, and in which unit.
      return describeRange(spec).replace(/a whole number from | \(plain numbers are \w+\)/g, '')
    case 'choice':
      return spec.choices.map((choice) => `\`${choice}\``).join(', ')
    case 'list':
      return `${describeEntries(spec)}${spec.maxCount === undefined ? '' : ` (1 to ${spec.maxCount})`}`
    case 'text':
      // No check allows the empty text, so its answer describes the allowed values.
      return spec.check?.('') ?? 'the name of a file'
  }
}

function describeEntries(spec) {
  const entry = spec.fromFile === 'pem' ? 'PEM text, or the name of a file that holds it' : (spec.check('') ?? 'texts')
  return spec.takesText === true ? `${entry}, or a list of them` : `a list of ${entry}`
}
