import { describeDefault, environmentNameOf, OPTION_SECTIONS, type OptionSpec } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { describeRange } from '../options/values.js'
import { placeholderOf } from './option-flags.js'
import { hasFileVariant } from './option-sources.js'

const INTRODUCTION = `# Configuration

Every option of the server, with its default, its flag, its environment variable and its name in the config file, which
is also its name in \`createServer({ … })\`. \`webmq-server --help\` shows the same, \`webmq-server config print\` shows what
the flags, the environment and the file add up to.

This page is generated from the table of options; after a change of \`packages/server/src/options/table.ts\` run
\`npx webmq-server config docs > docs/configuration.md\`. A test fails until that is done.

## Where values come from

Flags win over the environment, the environment over the config file, the file over the defaults.

- **Flags** take a unit where it helps: \`--max-payload 64KiB\`, \`--drain-timeout 10s\`. Sizes know \`KiB\`, \`MiB\`, \`GiB\` (\`kb\`,
  \`mb\`, \`gb\` mean the same multiples of 1,024), times know \`ms\`, \`s\`, \`m\`, \`h\`, \`d\`. A switch that the environment turned
  on is taken back with \`--no-…\`.
- **Environment**: \`WEBMQ_\` and the name of the flag, \`WEBMQ_MAX_PAYLOAD=64KiB\`. Lists are separated by commas, switches are
  \`on\` or \`off\`. \`PORT\` is honoured where \`WEBMQ_PORT\` is not set. An empty variable counts as not set, except for tokens:
  there it is an error, because a secret that got lost must not open the server to everyone. A \`WEBMQ_…\` variable that is not
  known is warned of.
- **Config file**: \`--config webmq.json\` or \`WEBMQ_CONFIG\`, one JSON object with the names below; \`jwt.secret\` stands for
  \`{ "jwt": { "secret": … } }\`. Numbers are in the unit of the option, or texts with a unit. Names that are not known are errors.
- **Secrets** are best kept in files: \`--jwt-secret-file\`, \`WEBMQ_JWT_SECRET_FILE\`, or \`"secretFile"\` in the config file. Paths
  are relative to the working directory.

\`\`\`json
{
  "host": "0.0.0.0",
  "origins": ["https://app.example.com"],
  "maxPayloadBytes": "64KiB",
  "jwt": { "jwksUrl": "https://id.example.com/.well-known/jwks.json", "audience": "webmq" }
}
\`\`\`

## What must hold together

- \`maxOutboxBytes\` is at least \`maxPayloadBytes\` + 4,096: otherwise every large message would make a slow consumer.
- Without tokens the server binds loopback only, unless \`insecure\` says otherwise (\`E_INSECURE\`).
- Tokens need exactly one of \`jwt.secret\`, \`jwt.publicKey\` and \`jwt.jwksUrl\`. A key set comes over \`https://\`, or from loopback,
  unless \`insecure\`.
- \`tls\` needs both files, and \`transport: 'uws'\`.

A value that is not allowed ends the start with \`E_OPTION_INVALID\` (exit code 2), which names the option, the value and what is
allowed.
`

/** The whole of `docs/configuration.md`. */
export function configDocs(): string {
  const specs: readonly OptionSpec[] = OPTIONS
  const sections = OPTION_SECTIONS.map((section) => {
    const entries = specs.filter((spec) => spec.section === section).map(describeOption)
    return `\n## ${section}\n${entries.join('')}`
  })
  return INTRODUCTION + sections.join('')
}

function describeOption(spec: OptionSpec): string {
  const flag = spec.type === 'switch' ? `--${spec.flag}` : `--${spec.flag} <${placeholderOf(spec)}>`
  const fileFlag = hasFileVariant(spec) ? `, \`--${spec.flag}-file <file>\`` : ''
  const fileVariable = hasFileVariant(spec) ? `, \`${environmentNameOf(spec)}_FILE\`` : ''
  const shortFlag = spec.shortFlag === undefined ? '' : `\`-${spec.shortFlag}\`, `
  return `
### \`${spec.name}\`

${spec.help}${spec.detail === undefined ? '' : ` ${spec.detail}`}

- Default: ${describeDefaultInDocs(spec)}
- Allowed: ${describeType(spec)}
- Flag: ${shortFlag}\`${flag}\`${fileFlag} · Environment: \`${environmentNameOf(spec)}\`${fileVariable}
`
}

function describeDefaultInDocs(spec: OptionSpec): string {
  const text = describeDefault(spec)
  if (text === undefined) return 'none'
  // What is a value is shown as one; what is a description is not.
  const isDescription = spec.type === 'list' || spec.type === 'switch' || ('defaultText' in spec && spec.defaultText)
  if (isDescription) return text
  const exact = spec.type === 'integer' && String(spec.default) !== text ? ` (${String(spec.default)})` : ''
  return `\`${text}\`${exact}`
}

function describeType(spec: OptionSpec): string {
  switch (spec.type) {
    case 'integer':
      return describeRange(spec)
    case 'choice':
      return spec.choices.map((choice) => `\`${choice}\``).join(', ')
    case 'list':
      return `a list of ${spec.check('') ?? 'texts'}; the flag may be repeated`
    case 'switch':
      return '`true` or `false`'
    case 'text':
      if (spec.fromFile === 'pem') return 'PEM text, or the name of a file that holds it'
      // What a check says of the empty text, which none allows, is what it allows.
      return spec.check?.('') ?? 'the name of a file'
  }
}
