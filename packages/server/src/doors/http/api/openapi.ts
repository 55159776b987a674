import type { JsonSchema } from '../../../kernel/base/shape.js'
import type { Route } from './route.js'
import { ROUTES } from './routes.js'
import { MESSAGE_ID, PROBLEM } from './shapes.js'
import { type ApiErrorCode, STATUSES } from './statuses.js'

/** Version of the API, not of the server: it changes only when a caller has to. */
const API_VERSION = '1.0.0'

const COMMON_ERRORS: readonly ApiErrorCode[] = [
  'E_REQUEST_INVALID',
  'E_ORIGIN_FORBIDDEN',
  'E_RATE_LIMIT',
  'E_INTERNAL',
  'E_NOT_RUNNING',
]
const CALLER_ERRORS: readonly ApiErrorCode[] = [
  'E_UNAUTHENTICATED',
  'E_TOKEN_INVALID',
  'E_TOKEN_EXPIRED',
  'E_TOKEN_REVOKED',
  'E_INSECURE',
  'E_FORBIDDEN',
  'E_HOOK_FAILED',
]
const BODY_ERRORS: readonly ApiErrorCode[] = ['E_MESSAGE_TIMEOUT', 'E_PAYLOAD_TOO_LARGE']

export function openApiDocument(): JsonSchema {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const [name, row] of Object.entries<Route>(ROUTES)) {
    paths[row.path] = { ...paths[row.path], [row.method.toLowerCase()]: operationOf(name, row) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'WebMQ HTTP API',
      version: API_VERSION,
      description: 'Publish, read and operate a WebMQ server over HTTP. Errors are JSON with a code.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: { Problem: PROBLEM.json },
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'A key of `--api-key`: may do everything.' },
        token: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'A token of a user: may do what its grants allow.',
        },
      },
    },
  }
}

function operationOf(name: string, row: Route): JsonSchema {
  const { access, summary, description, body } = row
  const parameters = parametersOf(row)
  return {
    operationId: name,
    summary,
    description,
    ...(access === 'everybody' ? undefined : { security: securityOf(access) }),
    ...(parameters.length > 0 ? { parameters } : undefined),
    ...(body === undefined ? undefined : { requestBody: { required: true, content: contentOf(row) } }),
    responses: responsesOf(row),
  }
}

function securityOf(access: 'client' | 'operator'): readonly object[] {
  // The empty requirement: without a key for tokens, clients of this machine need none.
  return access === 'operator' ? [{ apiKey: [] }] : [{ apiKey: [] }, { token: [] }, {}]
}

function parametersOf({ parameters, takesIdempotencyKey }: Route): readonly object[] {
  const inQuery = Object.entries(parameters).map(([name, { json, isOptional }]) => {
    const { description, examples: _, ...schema } = json
    return { name, in: 'query', required: isOptional !== true, description, schema }
  })
  if (takesIdempotencyKey !== true) return inQuery
  const { description, examples: _, ...schema } = MESSAGE_ID.json
  const header = {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description: `The id. ${description}`,
    schema,
  }
  return [...inQuery, header]
}

function contentOf({ body, takesBytes, takesFlow }: Route): JsonSchema {
  const examples = Object.entries(body?.examples ?? {}).map(([name, value]) => [name, { value }])
  return {
    'application/json': { schema: body?.shape.json, examples: Object.fromEntries(examples) },
    ...(takesBytes === true || takesFlow === true ? { 'application/octet-stream': { schema: {} } } : undefined),
    ...(takesFlow === true ? { 'text/plain': { schema: { type: 'string' } } } : undefined),
  }
}

function responsesOf(row: Route): JsonSchema {
  const codesByStatus = new Map<number, ApiErrorCode[]>()
  for (const code of errorsOf(row)) {
    const status = STATUSES[code]
    codesByStatus.set(status, [...(codesByStatus.get(status) ?? []), code])
  }
  // Statuses that no error of the table has of its own.
  codesByStatus.set(405, ['E_REQUEST_INVALID'])
  if (row.answersRaw === true) codesByStatus.set(406, ['E_REQUEST_INVALID'])
  if (row.body !== undefined) codesByStatus.set(415, ['E_REQUEST_INVALID'])
  const problem = { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } }
  const failures = [...codesByStatus]
    .sort(([one], [other]) => one - other)
    .map(([status, codes]) => [`${status}`, { description: codes.join(', '), content: problem }])
  return {
    200: {
      description: 'Done.',
      content: {
        'application/json': { schema: row.answer.json },
        ...(row.answersRaw === true
          ? { 'text/plain': { schema: { type: 'string' } }, 'application/octet-stream': { schema: {} } }
          : undefined),
      },
    },
    ...Object.fromEntries(failures),
  }
}

function errorsOf({ access, body, errors = [] }: Route): readonly ApiErrorCode[] {
  return [
    ...COMMON_ERRORS,
    ...(access === 'everybody' ? [] : CALLER_ERRORS),
    ...(body === undefined ? [] : BODY_ERRORS),
    ...errors,
  ]
}
