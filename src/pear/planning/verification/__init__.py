"""Does a plan hold what it claims? An independent check for an auditor."""

from pear.planning.verification.report import Finding, Report
from pear.planning.verification.verify import verify_plan

__all__ = ["Finding", "Report", "verify_plan"]
