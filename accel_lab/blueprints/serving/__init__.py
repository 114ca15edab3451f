"""Language models and embedders over HTTP, as OpenAI's clients speak it.

    deployment = Deployment(lab, {"smollm2": TextModel(*smollm2())})
    endpoint = serve(deployment)

Runs in the notebook's process.
"""

from accel_lab.blueprints.serving.deployment import EVERYBODY as EVERYBODY
from accel_lab.blueprints.serving.deployment import Deployment as Deployment
from accel_lab.blueprints.serving.errors import BudgetSpent as BudgetSpent
from accel_lab.blueprints.serving.errors import ServingUnavailable as ServingUnavailable
from accel_lab.blueprints.serving.model import Embedder as Embedder
from accel_lab.blueprints.serving.model import TextModel as TextModel
from accel_lab.blueprints.serving.server import Endpoint as Endpoint
from accel_lab.blueprints.serving.server import serve as serve
from accel_lab.blueprints.serving.tenants import Client as Client
