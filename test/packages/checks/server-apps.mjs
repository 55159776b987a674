// Applications around the blocks of docs/with/rails.md and docs/with/laravel.md, with what Debian has of the frameworks.

/** @type {readonly import('./framework-apps.mjs').Framework[]} */
export const SERVER_FRAMEWORKS = [
  {
    name: 'Rails',
    page: 'with/rails.md',
    blocks: ['ruby'],
    isPlain: true,
    needs: {
      command: ['ruby', '-e', 'require "rails"; require "sqlite3"; require "puma"'],
      packages: ['ruby-rails', 'ruby-sqlite3', 'puma'],
    },
    files: {
      'config/environment.rb': `require 'rails'
require 'active_record/railtie'
require 'action_controller/railtie'
require 'active_job/railtie'

class Chat < Rails::Application
  config.load_defaults "#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}"
  config.secret_key_base = ENV.fetch('SESSION_SECRET')
  config.eager_load = false
  config.logger = Logger.new($stdout)
end
Chat.initialize!
`,
      'config/database.yml': 'development: { adapter: sqlite3, database: db.sqlite3 }\n',
      'config/routes.rb': `Rails.application.routes.draw do
  get 'login', to: 'pages#login'
  get 'rooms/:room', to: 'pages#room'
  get 'token', to: 'tokens#show'
  post 'rooms/:room/messages', to: 'messages#create'
end
`,
      'config.ru': "require_relative 'config/environment'\nrun Rails.application\n",
      'schema.rb': `ActiveRecord::Schema.define do
  create_table(:users) { |table| table.string :name }
  create_table(:messages) { |table| table.integer :room_id; table.string :text }
end
`,
      'app/models/application_record.rb': `class ApplicationRecord < ActiveRecord::Base
  self.abstract_class = true
end
`,
      'app/models/user.rb': 'class User < ApplicationRecord; end\n',
      'app/jobs/application_job.rb': 'class ApplicationJob < ActiveJob::Base; end\n',
      'app/controllers/application_controller.rb': `class ApplicationController < ActionController::Base
  def current_user = User.find_by(id: session[:user_id])

  def authenticate_user! = current_user || head(:unauthorized)
end
`,
      'app/controllers/pages_controller.rb': `class PagesController < ApplicationController
  def login
    session[:user_id] = User.find_or_create_by!(name: params[:user]).id
    render plain: 'in'
  end

  def room = render(html: (helpers.csrf_meta_tags + File.read('page.html').html_safe))
end
`,
      'app/controllers/messages_controller.rb': `class MessagesController < ApplicationController
  before_action :authenticate_user!

  def create
    render json: Message.create!(room_id: params[:room], text: params[:text]), status: :created
  end
end
`,
    },
    build: [['ruby', '-r./config/environment', 'schema.rb']],
    start: ['sh', '-c', 'exec puma --bind tcp://127.0.0.1:$PORT'],
    ready: /Listening on/,
  },
  {
    name: 'Laravel',
    page: 'with/laravel.md',
    blocks: ['php'],
    isPlain: true,
    needs: {
      command: ['php', '-r', 'require "Illuminate/Foundation/helpers.php"; new PDO("sqlite::memory:"); curl_init();'],
      packages: ['php-cli', 'php-sqlite3', 'php-curl', 'php-guzzlehttp-guzzle', 'php-laravel-framework'],
    },
    files: {
      'autoload.php': `<?php
foreach (['Illuminate', 'GuzzleHttp', 'Symfony/Component/Routing'] as $library) require_once "$library/autoload.php";
require_once 'Illuminate/Foundation/helpers.php';
spl_autoload_register(function (string $class) {
    $file = strtr($class, ['App\\\\' => __DIR__ . '/app/', 'Illuminate\\\\' => '/usr/share/php/Illuminate/', '\\\\' => '/']);
    if (is_file("$file.php")) require "$file.php";
});
`,
      'bootstrap.php': `<?php
require __DIR__ . '/autoload.php';
$app = new Illuminate\\Foundation\\Application(__DIR__);
$app->singleton(Illuminate\\Contracts\\Http\\Kernel::class, App\\Http\\Kernel::class);
$app->singleton(Illuminate\\Contracts\\Debug\\ExceptionHandler::class, Illuminate\\Foundation\\Exceptions\\Handler::class);
return $app;
`,
      'server.php': `<?php
$kernel = (require __DIR__ . '/bootstrap.php')->make(Illuminate\\Contracts\\Http\\Kernel::class);
$kernel->handle(Illuminate\\Http\\Request::capture())->send();
`,
      'bootstrap/cache/.keep': '',
      'schema.php': `<?php
touch('db.sqlite');
$app = require __DIR__ . '/bootstrap.php';
$app->make(Illuminate\\Contracts\\Http\\Kernel::class)->bootstrap();
$tables = $app['db']->connection()->getSchemaBuilder();
foreach (['users' => ['name'], 'messages' => ['room', 'user_id', 'text']] as $name => $columns) {
    $tables->create($name, function ($table) use ($columns) {
        $table->id();
        foreach ($columns as $column) $table->string($column);
        $table->timestamps();
    });
}
`,
      'config/app.php': `<?php return [
    'key' => substr(getenv('SESSION_SECRET'), 0, 32), 'cipher' => 'AES-256-CBC', 'timezone' => 'UTC', 'locale' => 'en', 'fallback_locale' => 'en',
    'debug' => true,
    'providers' => array_map(fn ($name) => "Illuminate\\\\$name", [
        'Auth\\AuthServiceProvider', 'Cookie\\CookieServiceProvider', 'Database\\DatabaseServiceProvider',
        'Encryption\\EncryptionServiceProvider', 'Filesystem\\FilesystemServiceProvider',
        'Foundation\\Providers\\FoundationServiceProvider', 'Hashing\\HashServiceProvider',
        'Session\\SessionServiceProvider', 'Translation\\TranslationServiceProvider',
        'Validation\\ValidationServiceProvider', 'View\\ViewServiceProvider',
    ]),
];
`,
      'config/auth.php': `<?php return [
    'defaults' => ['guard' => 'web'],
    'guards' => ['web' => ['driver' => 'session', 'provider' => 'users']],
    'providers' => ['users' => ['driver' => 'eloquent', 'model' => App\\Models\\User::class]],
];
`,
      'config/database.php': `<?php return [
    'default' => 'sqlite', 'connections' => ['sqlite' => ['driver' => 'sqlite', 'database' => base_path('db.sqlite')]],
];
`,
      'config/session.php': `<?php return [
    'driver' => 'cookie', 'lifetime' => 60, 'expire_on_close' => false, 'cookie' => 'session', 'path' => '/',
    'domain' => null, 'secure' => false, 'http_only' => true, 'same_site' => 'lax', 'lottery' => [0, 1],
];
`,
      'config/services.php': `<?php return [
    'webmq' => ['url' => env('WEBMQ_URL'), 'key' => env('WEBMQ_API_KEY'), 'secret' => env('WEBMQ_JWT_SECRET')],
];
`,
      'config/logging.php': `<?php return [
    'default' => 'stderr',
    'channels' => ['stderr' => ['driver' => 'monolog', 'handler' => Monolog\\Handler\\StreamHandler::class, 'with' => ['stream' => 'php://stderr']]],
];
`,
      'config/view.php': "<?php return ['paths' => [], 'compiled' => sys_get_temp_dir()];\n",
      'app/Models/User.php': `<?php
namespace App\\Models;
class User extends \\Illuminate\\Foundation\\Auth\\User { protected $guarded = []; }
`,
      'app/Models/Message.php': `<?php
namespace App\\Models;
class Message extends \\Illuminate\\Database\\Eloquent\\Model { protected $guarded = []; }
`,
      'app/Http/Kernel.php': `<?php
namespace App\\Http;
class Kernel extends \\Illuminate\\Foundation\\Http\\Kernel
{
    protected $middlewareGroups = ['web' => [
        \\Illuminate\\Cookie\\Middleware\\EncryptCookies::class,
        \\Illuminate\\Cookie\\Middleware\\AddQueuedCookiesToResponse::class,
        \\Illuminate\\Session\\Middleware\\StartSession::class,
        \\Illuminate\\Foundation\\Http\\Middleware\\VerifyCsrfToken::class,
        \\Illuminate\\Routing\\Middleware\\SubstituteBindings::class,
    ]];
    protected $routeMiddleware = ['auth' => \\Illuminate\\Auth\\Middleware\\Authenticate::class];

    public function bootstrap()
    {
        parent::bootstrap();
        \\Illuminate\\Support\\Facades\\Route::middleware('web')->group(function () {
            require base_path('routes/pages.php');
            require base_path('routes/web.php');
        });
        $this->app['router']->getRoutes()->refreshNameLookups();
    }
}
`,
      'routes/pages.php': `<?php
use App\\Models\\User;
use Illuminate\\Http\\Request;
use Illuminate\\Support\\Facades\\Auth;
use Illuminate\\Support\\Facades\\Route;

Route::get('/login', function (Request $request) {
    Auth::login(User::firstOrCreate(['name' => $request->query('user')]));
    return 'in';
})->name('login');
Route::get('/rooms/{room}', fn () => '<meta name="csrf-token" content="' . csrf_token() . '">'
    . file_get_contents(base_path('page.html')));
`,
    },
    build: [['php', 'schema.php']],
    start: ['sh', '-c', 'exec php -S 127.0.0.1:$PORT server.php'],
    ready: /Development Server/,
  },
]
