export declare const USUAL_VERSIONS: Readonly<Record<'rabbitmq' | 'redis' | 'nats', string>>
export declare function findServices(): Promise<void>
